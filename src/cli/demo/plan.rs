//! What is published, and in which order. Pure.

use std::{collections::VecDeque, sync::Arc};

use chrono::{DateTime, Utc};

use crate::{
    event::{
        Basis, EventId, RawEvent, decode,
        sample::{built_in, restamp},
    },
    rule::{Action, Rules},
};

/// A copy follows its event after so many messages, in turn.
const GAPS: [usize; 5] = [0, 1, 3, 8, 20];

/// One message to publish.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) raw: RawEvent,
    pub(super) id: EventId,
    /// The server is to deliver it twice.
    pub(super) redeliver: bool,
}

/// The messages in order.
#[derive(Debug)]
pub(super) struct Plan {
    steps: VecDeque<Step>,
}

impl Plan {
    /// So many different events, a share `duplicates` of them published twice, a quarter of that delivered twice.
    pub(super) fn new(events: u32, duplicates: f64, rules: &Rules, now: DateTime<Utc>) -> Self {
        let samples: Vec<RawEvent> =
            built_in().iter().map(crate::event::sample::BuiltIn::raw).filter(|raw| is_fit(raw, rules)).collect();
        let (mut copies, mut redeliveries) = (Share::new(duplicates), Share::new(duplicates / 4.0));
        let mut steps = VecDeque::new();
        let mut waiting: Vec<(usize, Step)> = Vec::new();
        for (number, sample) in (0..events).zip(samples.iter().cycle()) {
            let raw = restamp(sample, now, Some(number.into()));
            let id = decode(&Arc::new(raw.clone())).id;
            let step = Step { raw, id, redeliver: redeliveries.hits() };
            if copies.hits() {
                let gap = GAPS[copies.count % GAPS.len()];
                waiting.push((steps.len() + 1 + gap, Step { redeliver: false, ..step.clone() }));
            }
            steps.push_back(step);
            while let Some(due) = waiting.iter().position(|(at, _)| *at <= steps.len()) {
                steps.push_back(waiting.swap_remove(due).1);
            }
        }
        steps.extend(waiting.into_iter().map(|(_, step)| step));
        Self { steps }
    }
}

impl Iterator for Plan {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        self.steps.pop_front()
    }
}

/// A handler gets to see it, and it is itself however often it is published.
fn is_fit(raw: &RawEvent, rules: &Rules) -> bool {
    let event = decode(&Arc::new(raw.clone()));
    let own_id = match event.basis {
        Basis::IxTime | Basis::IxMessage | Basis::CeSpaceEvent | Basis::CeSourceId => true,
        Basis::IxTransport | Basis::CePartial | Basis::Opaque => false,
    };
    own_id && rules.ruling(&event).action == Action::Handle
}

/// Hits a share of its calls, evenly.
#[derive(Debug)]
struct Share {
    share: f64,
    calls: u32,
    count: usize,
}

impl Share {
    const fn new(share: f64) -> Self {
        Self { share, calls: 0, count: 0 }
    }

    fn hits(&mut self) -> bool {
        let before = f64::from(self.calls) * self.share;
        self.calls += 1;
        // A tenth is not quite a tenth in binary.
        let hit = (f64::from(self.calls) * self.share + 1e-9).floor() > (before + 1e-9).floor();
        self.count += usize::from(hit);
        hit
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::config::Config;

    fn plan(events: u32, duplicates: f64) -> Vec<Step> {
        let now = DateTime::from_timestamp(1_800_000_000, 0).unwrap();
        Plan::new(events, duplicates, &Config::default().rules(), now).collect()
    }

    fn copies(steps: &[Step]) -> HashMap<&EventId, usize> {
        steps.iter().fold(HashMap::new(), |mut copies, step| {
            *copies.entry(&step.id).or_default() += 1;
            copies
        })
    }

    #[test]
    fn so_many_events_are_different_and_so_many_come_twice() {
        let steps = plan(300, 0.2);

        let copies = copies(&steps);
        assert_eq!((copies.len(), steps.len()), (300, 360));
        assert!(copies.values().all(|count| *count <= 2));
        assert_eq!(steps.iter().filter(|step| step.redeliver).count(), 15);
    }

    #[test]
    fn every_share_is_met_exactly() {
        for (events, share, expected) in [(10, 0.0, 10), (10, 1.0, 20), (7, 0.5, 10), (1_000, 0.1, 1_100), (3, 0.3, 3)]
        {
            assert_eq!(plan(events, share).len(), expected, "{events} {share}");
        }
    }

    #[test]
    fn a_copy_comes_after_its_event_and_is_the_same_event() {
        let steps = plan(200, 0.5);

        for (at, step) in steps.iter().enumerate() {
            if let Some(earlier) = steps[..at].iter().find(|earlier| earlier.id == step.id) {
                assert_eq!(earlier.raw.data, step.raw.data);
            }
        }
    }

    #[test]
    fn nothing_that_a_rule_skips_is_published() {
        let rules = Config::default().rules();

        for step in plan(100, 0.0) {
            assert_eq!(rules.ruling(&decode(&Arc::new(step.raw))).action, Action::Handle);
        }
    }
}
