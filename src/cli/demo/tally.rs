//! Counts what happens to each event, and tells the terminal.

use std::{
    collections::{HashMap, HashSet},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use serde::Serialize;
use tokio::{sync::mpsc, time::Instant};

use crate::{
    event::{Event, EventId},
    outcome::Reason,
    worker::{Happening, Observer},
};

/// One line for the terminal.
#[derive(Debug, Clone)]
pub(super) struct Line {
    /// Since the start.
    pub(super) at: Duration,
    pub(super) id: String,
    pub(super) event_type: String,
    pub(super) space: String,
    pub(super) what: What,
}

/// What a line tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// By which attempt.
    Handled(u32),
    /// Handled, though it was handled before.
    HandledAgain,
    /// A second message with the same event; the handler was not called for it.
    Duplicate,
    /// The same message once more; the handler was not called for it.
    Redelivered,
    /// Tried again after so long.
    Retried(Duration),
    Quarantined(Reason),
    Skipped,
}

/// What came of everything: the answer of `demo`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub(super) struct Summary {
    /// Messages.
    pub(super) published: usize,
    /// Events in them.
    pub(super) distinct: usize,
    /// Events whose handler did its work.
    pub(super) handled: usize,
    /// Messages with an event that another message brought too: acked without calling the handler.
    pub(super) duplicates: usize,
    /// Events that were tried more than once.
    pub(super) retried: usize,
    /// Events put aside.
    pub(super) quarantined: usize,
    /// Events neither handled nor put aside.
    pub(super) lost: usize,
    /// Messages the server delivered twice on purpose.
    #[serde(skip)]
    pub(super) redelivered: usize,
    /// Messages with different content under the id of another event: put aside, the event's own end is not theirs.
    #[serde(skip)]
    pub(super) mismatches: usize,
    /// Events that a rule skipped and nothing else came of; they count nowhere else but in `published`.
    #[serde(skip)]
    pub(super) skipped: usize,
    /// Events whose handler succeeded more than once.
    #[serde(skip)]
    pub(super) handled_again: usize,
}

impl Summary {
    /// Nothing lost, nothing doubled.
    pub(super) const fn is_sound(&self) -> bool {
        self.lost == 0 && self.handled_again == 0 && self.handled + self.quarantined == self.distinct
    }
}

/// See the module's words.
#[derive(Debug)]
pub(super) struct Tally {
    started: Instant,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// `None` once nothing more will be shown.
    lines: Option<mpsc::Sender<Line>>,
    events: HashMap<EventId, Record>,
    /// Messages we know to be on the topic.
    published: HashSet<String>,
    /// Messages that came out of it.
    seen: HashSet<String>,
    redelivered: usize,
    happenings: u64,
}

#[derive(Debug, Default)]
struct Record {
    /// The message that brought it first.
    first: Option<String>,
    /// Those that came to something.
    messages: HashSet<String>,
    handled: u32,
    retries: u32,
    quarantined: bool,
    /// Messages that were skipped; one event can be skipped in one message and handled in another.
    skipped: HashSet<String>,
    /// Messages put aside as another event under this id.
    mismatches: HashSet<String>,
}

impl Record {
    fn is_settled(&self) -> bool {
        self.handled > 0 || self.quarantined || self.is_skipped()
    }

    /// Nothing came of it but that.
    fn is_skipped(&self) -> bool {
        self.handled == 0 && !self.quarantined && !self.skipped.is_empty()
    }

    fn duplicates(&self) -> usize {
        let aside = |message: &&String| !self.skipped.contains(*message) && !self.mismatches.contains(*message);
        self.messages.iter().filter(aside).count().saturating_sub(1)
    }
}

impl Tally {
    pub(super) fn new(lines: mpsc::Sender<Line>) -> Self {
        let state = State {
            lines: Some(lines),
            events: HashMap::new(),
            published: HashSet::new(),
            seen: HashSet::new(),
            redelivered: 0,
            happenings: 0,
        };
        Self { started: Instant::now(), state: Mutex::new(state) }
    }

    /// An event is about to be published.
    pub(super) fn expect(&self, id: &EventId) {
        self.lock().events.entry(id.clone()).or_default();
    }

    /// A message is on the topic; whether it was delivered twice.
    pub(super) fn published(&self, (message_id, delivered_twice): (String, bool)) {
        let mut state = self.lock();
        state.published.insert(message_id);
        state.redelivered += usize::from(delivered_twice);
    }

    /// No more lines.
    pub(super) fn close(&self) {
        self.lock().lines = None;
    }

    /// How much happened so far.
    pub(super) fn happenings(&self) -> u64 {
        self.lock().happenings
    }

    /// Every message came out, every event came to its end.
    pub(super) fn all_settled(&self) -> bool {
        let state = self.lock();
        state.published.is_subset(&state.seen) && state.events.values().all(Record::is_settled)
    }

    pub(super) fn summary(&self) -> Summary {
        let state = self.lock();
        let events = || state.events.values().filter(|record| !record.is_skipped());
        let count = |of: fn(&Record) -> bool| events().filter(|record| of(record)).count();
        Summary {
            published: state.published.union(&state.seen).count(),
            distinct: events().count(),
            handled: count(|record| record.handled > 0),
            duplicates: events().map(Record::duplicates).sum(),
            retried: count(|record| record.retries > 0),
            quarantined: count(|record| record.quarantined && record.handled == 0),
            lost: count(|record| !record.is_settled()),
            redelivered: state.redelivered,
            mismatches: events().map(|record| record.mismatches.len()).sum(),
            skipped: state.events.values().filter(|record| record.is_skipped()).count(),
            handled_again: count(|record| record.handled > 1),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Counts; answers what is worth a line.
    fn note(&mut self, id: &EventId, message_id: &str, what: Happening) -> Option<What> {
        self.happenings += 1;
        let record = self.events.entry(id.clone()).or_default();
        let is_first = record.first.get_or_insert_with(|| message_id.to_owned()) == message_id;
        if what == Happening::Taken {
            return None;
        }
        self.seen.insert(message_id.to_owned());
        let new_message = record.messages.insert(message_id.to_owned());
        let copy = if new_message && !is_first { What::Duplicate } else { What::Redelivered };
        match what {
            Happening::Taken => None,
            Happening::Skipped => {
                record.skipped.insert(message_id.to_owned());
                Some(What::Skipped)
            }
            Happening::Handled { attempt } => {
                record.handled += 1;
                Some(if record.handled > 1 { What::HandledAgain } else { What::Handled(attempt) })
            }
            // After every failure its messages come back and wait for their time: no news.
            Happening::Duplicate | Happening::Merged => {
                (record.retries == 0 || copy == What::Duplicate).then_some(copy)
            }
            Happening::Parked => (copy == What::Duplicate).then_some(copy),
            Happening::Retried { after, .. } => {
                record.retries += 1;
                Some(What::Retried(after))
            }
            Happening::Quarantined(Reason::Mismatch) => {
                record.mismatches.insert(message_id.to_owned());
                Some(What::Quarantined(Reason::Mismatch))
            }
            Happening::Quarantined(_) if record.quarantined => Some(copy),
            Happening::Quarantined(reason) => {
                record.quarantined = true;
                Some(What::Quarantined(reason))
            }
        }
    }
}

impl Observer for Tally {
    fn happened(&self, event: &Event, what: Happening) {
        let mut state = self.lock();
        let Some(what) = state.note(&event.id, &event.raw.message_id, what) else { return };
        let line = Line {
            at: self.started.elapsed(),
            id: event.id.to_string(),
            event_type: event.event_type.clone(),
            space: event.chat.space.clone().unwrap_or_default(),
            what,
        };
        if let Some(lines) = &state.lines {
            // A terminal that does not keep up misses lines; the counts do not.
            drop(lines.try_send(line));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bench(Tally);

    impl Bench {
        fn new() -> Self {
            Self(Tally::new(mpsc::channel(1).0))
        }

        fn publish(&self, event: &str, message: &str) {
            self.0.expect(&EventId::new(event));
            self.0.published((message.to_owned(), false));
        }

        fn note(&self, event: &str, message: &str, what: Happening) -> Option<What> {
            self.0.lock().note(&EventId::new(event), message, what)
        }
    }

    const HANDLED: Happening = Happening::Handled { attempt: 1 };
    const RETRIED: Happening = Happening::Retried { after: Duration::from_secs(1), counted: true };

    #[test]
    fn each_message_and_each_event_is_counted_once() {
        let bench = Bench::new();
        for (event, message) in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4")] {
            bench.publish(event, message);
        }

        assert_eq!(bench.note("a", "1", HANDLED), Some(What::Handled(1)));
        assert_eq!(bench.note("a", "3", Happening::Duplicate), Some(What::Duplicate));
        assert_eq!(bench.note("b", "2", RETRIED), Some(What::Retried(Duration::from_secs(1))));
        assert_eq!(bench.note("b", "2", Happening::Parked), None);
        assert_eq!(bench.note("b", "2", RETRIED), Some(What::Retried(Duration::from_secs(1))));
        assert_eq!(bench.note("b", "2", Happening::Merged), None);
        let end = Happening::Quarantined(Reason::FailuresExhausted);
        assert_eq!(bench.note("b", "2", end), Some(What::Quarantined(Reason::FailuresExhausted)));
        assert!(!bench.0.all_settled());
        bench.note("c", "4", HANDLED);

        assert!(bench.0.all_settled());
        let summary = bench.0.summary();
        let expected = Summary {
            published: 4,
            distinct: 3,
            handled: 2,
            duplicates: 1,
            retried: 1,
            quarantined: 1,
            ..Summary::default()
        };
        assert_eq!(summary, expected);
        assert!(summary.is_sound());
    }

    #[test]
    fn a_copy_that_is_still_on_its_way_is_waited_for() {
        let bench = Bench::new();
        bench.publish("a", "1");
        bench.publish("a", "2");

        bench.note("a", "1", HANDLED);

        assert!(!bench.0.all_settled());
    }

    #[test]
    fn a_copy_that_arrives_first_is_no_duplicate_of_itself() {
        let bench = Bench::new();
        bench.publish("a", "1");

        bench.note("a", "1", Happening::Merged);
        bench.note("a", "1", HANDLED);

        assert_eq!(bench.0.summary().duplicates, 0);
    }

    #[test]
    fn a_copy_that_joins_the_running_first_was_published_twice_and_only_a_second_delivery_is_that() {
        let bench = Bench::new();
        bench.publish("a", "1");
        bench.publish("a", "2");

        assert_eq!(bench.note("a", "1", Happening::Taken), None);
        assert_eq!(bench.note("a", "2", Happening::Merged), Some(What::Duplicate));
        assert_eq!(bench.note("a", "1", Happening::Merged), Some(What::Redelivered));
        assert_eq!(bench.note("a", "2", Happening::Merged), Some(What::Redelivered));
        assert_eq!(bench.note("a", "1", HANDLED), Some(What::Handled(1)));

        assert_eq!(bench.0.summary().duplicates, 1);
    }

    #[test]
    fn what_is_taken_has_not_come_out_yet() {
        let bench = Bench::new();
        bench.publish("a", "1");
        bench.publish("a", "2");
        bench.note("a", "1", Happening::Taken);
        bench.note("a", "1", HANDLED);
        bench.note("a", "2", Happening::Taken);

        assert!(!bench.0.all_settled());
        assert_eq!(bench.note("a", "2", Happening::Duplicate), Some(What::Duplicate));
        assert!(bench.0.all_settled());
    }

    #[test]
    fn what_a_rule_skips_is_counted_for_itself() {
        let bench = Bench::new();
        bench.publish("a", "1");
        assert_eq!(bench.note("a", "1", Happening::Skipped), Some(What::Skipped));

        let expected = Summary { published: 1, skipped: 1, ..Summary::default() };
        assert_eq!(bench.0.summary(), expected);
        assert!(expected.is_sound());
    }

    #[test]
    fn an_event_skipped_in_one_message_and_handled_in_another_is_handled() {
        for order in [[Happening::Skipped, HANDLED], [HANDLED, Happening::Skipped]] {
            let bench = Bench::new();
            for (message, what) in ["1", "2"].into_iter().zip(order) {
                bench.publish("a", message);
                bench.note("a", message, what);
            }

            let expected = Summary { published: 2, distinct: 1, handled: 1, ..Summary::default() };
            assert_eq!(bench.0.summary(), expected);
        }
    }

    #[test]
    fn different_content_under_one_id_is_put_aside_and_no_duplicate() {
        let bench = Bench::new();
        let mismatch = Happening::Quarantined(Reason::Mismatch);
        for (message, what) in [("1", HANDLED), ("2", mismatch), ("3", Happening::Duplicate)] {
            bench.publish("a", message);
            bench.note("a", message, what);
        }

        let expected =
            Summary { published: 3, distinct: 1, handled: 1, duplicates: 1, mismatches: 1, ..Summary::default() };
        assert_eq!(bench.0.summary(), expected);
        assert!(expected.is_sound());
    }

    #[test]
    fn what_was_neither_handled_nor_put_aside_is_lost() {
        let bench = Bench::new();
        bench.publish("a", "1");
        bench.note("a", "1", RETRIED);

        assert_eq!(bench.0.summary().lost, 1);
        assert!(!bench.0.summary().is_sound());
    }

    #[test]
    fn a_second_success_is_told_and_unsound() {
        let bench = Bench::new();
        bench.publish("a", "1");

        bench.note("a", "1", HANDLED);

        assert_eq!(bench.note("a", "1", HANDLED), Some(What::HandledAgain));
        assert!(!bench.0.summary().is_sound());
    }

    #[test]
    fn the_json_has_the_agreed_keys_and_no_others() {
        let json = serde_json::to_string(&Summary::default()).unwrap();

        assert_eq!(
            json,
            r#"{"published":0,"distinct":0,"handled":0,"duplicates":0,"retried":0,"quarantined":0,"lost":0}"#
        );
    }
}
