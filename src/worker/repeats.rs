//! Suspected duplicates: events alike in everything but time and transport id, within two minutes.
//!
//! A publisher that stamps a retry anew makes a copy that no id can recognise. How often that happens is worth knowing,
//! so it is counted; it is never a reason to drop an event, since two users may well do the same within minutes.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::event::{Event, EventId, SoftKey};

/// How long an event is remembered.
const MEMORY: Duration = Duration::from_secs(120);
/// How many events are remembered at most; then the oldest are forgotten early.
const PLACES: usize = 10_000;

/// What came lately.
#[derive(Debug, Default)]
pub(super) struct Repeats(Mutex<Memory>);

#[derive(Debug, Default)]
struct Memory {
    newest: HashMap<SoftKey, (EventId, Instant)>,
    order: VecDeque<(SoftKey, Instant)>,
}

impl Repeats {
    /// Remembers the event; true when another one like it came lately. A copy with the same id is no other one.
    pub(super) fn is_repeat(&self, event: &Event) -> bool {
        let Some(soft_key) = event.soft_key() else { return false };
        let now = Instant::now();
        let mut memory = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        memory.forget(now);
        memory.order.push_back((soft_key, now));
        let earlier = memory.newest.insert(soft_key, (event.id.clone(), now));
        earlier.is_some_and(|(id, _)| id != event.id)
    }
}

impl Memory {
    fn forget(&mut self, now: Instant) {
        while let Some(&(soft_key, at)) = self.order.front() {
            if self.order.len() < PLACES && now.duration_since(at) <= MEMORY {
                break;
            }
            self.order.pop_front();
            if self.newest.get(&soft_key).is_some_and(|(_, newest)| *newest == at) {
                self.newest.remove(&soft_key);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;
    use tokio::time;

    use super::*;
    use crate::event::{RawEvent, decode};

    fn click(second: u32, user: &str) -> Event {
        let click = json!({
            "type": "CARD_CLICKED", "eventTime": format!("2026-05-04T09:15:{second:02}Z"),
            "space": { "name": "spaces/S" }, "user": { "name": user },
            "message": { "name": "spaces/S/messages/1" }, "action": { "actionMethodName": "approve" },
        });
        decode(&Arc::new(RawEvent { data: click.to_string().into(), ..RawEvent::default() }))
    }

    #[tokio::test(start_paused = true)]
    async fn the_same_click_with_a_fresh_time_is_a_repeat_for_two_minutes() {
        let repeats = Repeats::default();
        assert!(!repeats.is_repeat(&click(1, "users/1")));

        assert!(repeats.is_repeat(&click(2, "users/1")));
        time::advance(MEMORY).await;
        assert!(repeats.is_repeat(&click(3, "users/1")));
        time::advance(MEMORY + Duration::from_secs(1)).await;
        assert!(!repeats.is_repeat(&click(4, "users/1")));
    }

    #[tokio::test(start_paused = true)]
    async fn a_copy_and_another_user_are_no_repeats() {
        let repeats = Repeats::default();
        repeats.is_repeat(&click(1, "users/1"));

        assert!(!repeats.is_repeat(&click(1, "users/1")), "a copy has the same id");
        assert!(!repeats.is_repeat(&click(1, "users/2")));
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded() {
        let repeats = Repeats::default();

        for user in 0..PLACES + 500 {
            repeats.is_repeat(&click(1, &format!("users/{user}")));
        }

        let memory = repeats.0.lock().unwrap();
        assert!(memory.order.len() <= PLACES && memory.newest.len() <= PLACES);
    }
}
