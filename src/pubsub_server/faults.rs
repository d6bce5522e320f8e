//! Faults on order, for tests: set in the process, never reachable over the network.

use std::{
    collections::{HashMap, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
};

use tonic::Status;

/// Calls kept on record.
const RECORDED: usize = 100_000;

/// The methods faults are ordered for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "named after the methods")]
pub enum Method {
    Publish,
    GetSubscription,
    Acknowledge,
    ModifyAckDeadline,
    Pull,
    StreamingPull,
}

/// One ModifyAckDeadline, unary or on a stream, as it came in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModAck {
    /// The full name of the subscription.
    pub subscription: String,
    /// Which deliveries.
    pub ack_ids: Vec<String>,
    /// Zero is a nack.
    pub seconds: i32,
}

/// What a call is to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    Serve,
    /// Answer OK and do nothing.
    Swallow,
}

/// The faults ordered, and a record of what came in.
#[derive(Debug, Default)]
pub struct Faults {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    failing: HashMap<Method, VecDeque<Status>>,
    failing_share: HashMap<Method, (Share, Status)>,
    swallowed: HashMap<Method, Share>,
    calls: HashMap<Method, u64>,
    modacks: VecDeque<ModAck>,
    invalid_acks: usize,
    transient_acks: usize,
}

/// Hits evenly: a share of 0.25 hits every fourth call, always the same ones.
#[derive(Debug, Clone, Copy, Default)]
struct Share {
    share: f64,
    due: f64,
}

impl Share {
    fn hits(&mut self) -> bool {
        self.due += self.share;
        // Ten times a tenth is a little less than one.
        let hit = self.due > 1.0 - 1e-9;
        if hit {
            self.due -= 1.0;
        }
        hit
    }
}

impl Faults {
    /// The next `count` calls of `method` answer `status`.
    pub fn fail_next(&self, method: Method, count: usize, status: &Status) {
        self.lock().failing.entry(method).or_default().extend(std::iter::repeat_n(status.clone(), count));
    }

    /// A share of the calls of `method`, 0 to 1, answers `status` and does nothing; 0 ends it.
    pub fn fail_share(&self, method: Method, share: f64, status: Status) {
        self.lock().failing_share.insert(method, (Share { share, due: 0.0 }, status));
    }

    /// A share of the calls of `method`, 0 to 1, answers OK and does nothing; 0 ends it. For Publish,
    /// GetSubscription and the pulls, which have no empty answer, nothing happens.
    pub fn swallow_share(&self, method: Method, share: f64) {
        self.lock().swallowed.insert(method, Share { share, due: 0.0 });
    }

    /// The next `count` ack ids acknowledged on exactly-once subscriptions fail with
    /// `PERMANENT_FAILURE_INVALID_ACK_ID`, each by itself.
    pub fn invalidate_next_acks(&self, count: usize) {
        self.lock().invalid_acks += count;
    }

    /// The next `count` ack ids acknowledged on exactly-once subscriptions fail for the moment
    /// (`TRANSIENT_FAILURE_SERVICE_UNAVAILABLE`), each by itself.
    pub fn fail_next_acks_for_the_moment(&self, count: usize) {
        self.lock().transient_acks += count;
    }

    /// How often `method` was called, failed calls included.
    #[must_use]
    pub fn calls(&self, method: Method) -> u64 {
        self.lock().calls.get(&method).copied().unwrap_or_default()
    }

    /// The deadline changes that came in, the last 100,000.
    #[must_use]
    pub fn modacks(&self) -> Vec<ModAck> {
        self.lock().modacks.iter().cloned().collect()
    }

    /// Counts the call and says what it is to do.
    pub(super) fn order(&self, method: Method) -> Result<Order, Status> {
        let mut state = self.lock();
        *state.calls.entry(method).or_default() += 1;
        if let Some(status) = state.failing.get_mut(&method).and_then(VecDeque::pop_front) {
            return Err(status);
        }
        if let Some((share, status)) = state.failing_share.get_mut(&method)
            && share.hits()
        {
            return Err(status.clone());
        }
        let swallow = state.swallowed.get_mut(&method).is_some_and(Share::hits);
        Ok(if swallow { Order::Swallow } else { Order::Serve })
    }

    pub(super) fn record(&self, modack: ModAck) {
        let mut state = self.lock();
        if state.modacks.len() == RECORDED {
            state.modacks.pop_front();
        }
        state.modacks.push_back(modack);
    }

    /// Why this ack id is to fail, if it is.
    pub(super) fn ack_failure(&self) -> Option<&'static str> {
        let mut state = self.lock();
        if let Some(left) = state.invalid_acks.checked_sub(1) {
            state.invalid_acks = left;
            return Some(super::answers::INVALID_ACK_ID);
        }
        let left = state.transient_acks.checked_sub(1)?;
        state.transient_acks = left;
        Some(super::answers::UNAVAILABLE)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_hits_evenly_and_always_the_same_calls() {
        let faults = Faults::default();
        faults.swallow_share(Method::Acknowledge, 0.25);

        let hits: Vec<bool> = (0..8).map(|_| faults.order(Method::Acknowledge).unwrap() == Order::Swallow).collect();

        assert_eq!(hits, [false, false, false, true, false, false, false, true]);
        assert_eq!(faults.calls(Method::Acknowledge), 8);
    }

    #[test]
    fn a_tenth_of_a_thousand_calls_is_a_hundred() {
        let faults = Faults::default();
        faults.swallow_share(Method::Acknowledge, 0.1);

        let hits = (0..1_000).filter(|_| faults.order(Method::Acknowledge).unwrap() == Order::Swallow).count();

        assert_eq!(hits, 100);
    }

    #[test]
    fn only_the_next_calls_of_the_method_fail() {
        let faults = Faults::default();
        faults.fail_next(Method::Publish, 2, &Status::unavailable("ordered"));

        let publish: Vec<bool> = (0..3).map(|_| faults.order(Method::Publish).is_err()).collect();

        assert_eq!(publish, [true, true, false]);
        assert!(faults.order(Method::Pull).is_ok());
    }
}
