//! Merging: every copy of an event that this process holds is answered together.
//!
//! A copy that arrives while its event is waiting, running or parked here is attached to it. So a process never parks
//! behind itself, and a late ack cannot be undone by the nack of another copy: they get one answer, newest first
//! (on an exactly-once subscription only the newest ack id is valid).

use std::{
    collections::{HashMap, hash_map::Entry},
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use crate::{claim::Key, event::Fingerprint, source::Acker};

/// One event of this process. Copies of another event that carries the same id are not merged: the store tells them
/// apart.
pub(super) type FlightId = (Key, Fingerprint);

/// All events this process holds copies of.
#[derive(Default)]
pub(super) struct Flights {
    ackers: Mutex<HashMap<FlightId, Vec<Box<dyn Acker>>>>,
}

impl Flights {
    /// Attaches a copy to its event. Returns the flight when it is the first copy; else the copy was merged.
    pub(super) fn board(self: &Arc<Self>, id: FlightId, acker: Box<dyn Acker>) -> Option<Flight> {
        match self.lock().entry(id) {
            Entry::Occupied(mut entry) => {
                entry.get_mut().push(acker);
                None
            }
            Entry::Vacant(entry) => {
                entry.insert(vec![acker]);
                Some(Flight { id, flights: Arc::clone(self), answered: false })
            }
        }
    }

    fn take(&self, id: &FlightId) -> Vec<Box<dyn Acker>> {
        self.lock().remove(id).unwrap_or_default()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<FlightId, Vec<Box<dyn Acker>>>> {
        // A panic cannot leave the map half-changed: every change is one call.
        self.ackers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The copies of one event, to be answered once. Dropped unanswered (a panic), all of them are nacked.
#[must_use = "unanswered copies are redelivered"]
pub(super) struct Flight {
    id: FlightId,
    flights: Arc<Flights>,
    answered: bool,
}

impl Flight {
    /// Acks every copy, newest first.
    pub(super) async fn ack(mut self) {
        for acker in self.copies().into_iter().rev() {
            acker.ack().await;
        }
    }

    /// Nacks every copy, newest first.
    pub(super) async fn nack(mut self) {
        for acker in self.copies().into_iter().rev() {
            acker.nack().await;
        }
    }

    /// All copies so far. One that comes from now on begins a flight of its own under the same id, and this one must
    /// leave it alone.
    fn copies(&mut self) -> Vec<Box<dyn Acker>> {
        self.answered = true;
        self.flights.take(&self.id)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        if !self.answered {
            drop(self.flights.take(&self.id));
        }
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Flight").field(&self.id).finish()
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::{event::RawEvent, testing::source::AckLog};

    fn copy(log: &AckLog, id: &str) -> Box<dyn Acker> {
        log.delivery(RawEvent { message_id: id.to_owned(), data: Bytes::new(), ..RawEvent::default() }).acker
    }

    #[tokio::test]
    async fn a_copy_that_comes_while_its_event_is_answered_begins_a_flight_of_its_own() {
        let (flights, log) = (Arc::new(Flights::default()), AckLog::default());
        let id = (Key::from(uuid::Uuid::nil()), Fingerprint([0; 17]));
        let Some(mut first) = flights.board(id, copy(&log, "m1")) else { panic!("the first copy") };

        // As `ack` does, stopped halfway.
        let answered = first.copies();
        let second = flights.board(id, copy(&log, "m2"));
        drop(first);
        drop(answered);

        assert!(second.is_some());
        assert!(flights.board(id, copy(&log, "m3")).is_none(), "it still flies");
        second.unwrap().ack().await;
        assert_eq!(log.answers(), ["drop m1", "ack m3", "ack m2"]);
    }
}
