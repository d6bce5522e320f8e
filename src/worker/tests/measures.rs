//! What the engine counts, measures and logs.

use std::io;

use prometheus::Histogram;
use serde_json::Value;
use tracing_subscriber::fmt;

use super::*;
use crate::metrics::labels::CLAIM_RESULTS;

/// How many calls took at most this share of their timeout.
fn at_most(shares: &Histogram, share: f64) -> u64 {
    let families = prometheus::core::Collector::collect(shares);
    let histogram = families[0].get_metric()[0].get_histogram().clone();
    let within = histogram.get_bucket().iter().filter(|bucket| bucket.upper_bound() <= share);
    within.map(prometheus::proto::Bucket::cumulative_count).max().unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn a_call_is_measured_against_its_own_timeout_however_long_that_is() {
    for timeout in [Duration::from_millis(100), TIMEOUT, Duration::from_secs(6 * 3_600)] {
        let rule = Rule { timeout: Some(timeout), ..Rule::default() };
        let bench = Setup { rule, ..Setup::acts([Act::SucceedAfter(timeout * 85 / 100), Act::Hang]) }.start();
        bench.deliver(1, "m1");
        bench.deliver(2, "m2");
        time::sleep(timeout + Duration::from_secs(60)).await;

        let mut answers = bench.log.answers();
        answers.sort_unstable();
        assert_eq!(answers, ["ack m1", "nack m2"], "{timeout:?}");
        let used = &bench.metrics.handler_timeout_used;
        assert_eq!(used.get_sample_count(), 2, "{timeout:?}");
        assert_eq!((at_most(used, 0.8), at_most(used, 0.9)), (0, 1), "{timeout:?}");
        bench.stop().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_handler_that_ends_at_its_deadline_is_a_timeout_whoever_ended_it() {
    for act in [Act::Hang, Act::TimeOut] {
        let bench = Setup::acts([act.clone()]).start();
        bench.deliver(1, "m1");
        bench.answers(1).await;

        let calls =
            |outcome| bench.metrics.handler_duration.with_label_values(&["MESSAGE", outcome]).get_sample_count();
        assert_eq!((calls("timeout"), calls("error")), (1, 0), "{act:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_a_drain_cut_is_counted_by_who_claims_the_event_next() {
    let cut = Setup::acts([Act::Hang]).start();
    cut.deliver(1, "m1");
    cut.calls(1).await;
    cut.shutdown.abort();
    assert_eq!(cut.answers(1).await, ["nack m1"]);

    let next = Setup::acts([Act::Fail]).start_on(cut.memory.clone(), Arc::clone(&cut.clock));
    next.deliver(1, "again");
    next.answers(1).await;
    next.deliver(1, "once more");
    assert_eq!(next.answers(2).await, ["nack again", "ack once more"]);

    // The process that cut it has nobody left to show it to.
    assert_eq!((cut.metrics.drain_aborted.get(), next.metrics.drain_aborted.get()), (0, 1));
    next.stop().await;
}

#[tokio::test(start_paused = true)]
async fn every_answer_to_a_claim_is_counted_under_its_own_name() {
    let dies = Setup::acts([Act::Hang]).start();
    dies.deliver(1, "m1");
    dies.calls(1).await;
    let dies_too = Setup::acts([Act::Hang]).strict().start_on(dies.memory.clone(), Arc::clone(&dies.clock));
    dies_too.deliver(2, "m2");
    dies_too.calls(1).await;
    dies.store.set_down(true);
    dies_too.store.set_down(true);
    time::sleep(LEASE * 2).await;
    let runs = Setup::acts([Act::Hang]).start_on(dies.memory.clone(), Arc::clone(&dies.clock));
    runs.deliver(4, "m4");
    runs.calls(1).await;
    let setup =
        Setup { faults: |store| store.on(Method::Enter, Fault::BeforeWrite), ..Setup::acts([Act::Succeed, Act::Fail]) };
    let lives = setup.start_on(dies.memory.clone(), Arc::clone(&dies.clock));

    lives.deliver(1, "lost");
    lives.deliver(2, "lost, strict");
    lives.answers(2).await;
    lives.deliver(3, "new");
    lives.answers(3).await;
    lives.deliver(1, "settled");
    lives.deliver(3, "early");
    lives.answers(5).await;
    lives.deliver(4, "runs elsewhere");
    time::sleep(Duration::from_secs(1)).await;

    let counted = |result| lives.metrics.events_claimed.with_label_values(&["MESSAGE", result]).get();
    for result in CLAIM_RESULTS {
        assert!(counted(result) > 0, "{result}");
    }
    assert_eq!((counted("takeover"), counted("quarantined"), counted("duplicate")), (1, 1, 1));
}

#[derive(Clone, Default)]
struct Lines(Arc<std::sync::Mutex<Vec<u8>>>);

impl Lines {
    /// Field `name` of each line that has it, with the line's level.
    fn fields(&self, name: &str) -> Vec<(String, String)> {
        let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let field = |line: &Value| Some((line["level"].as_str()?.to_owned(), line[name].as_str()?.to_owned()));
        lines.filter_map(|line| field(&line)).collect()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[tokio::test(start_paused = true)]
async fn the_line_of_a_settled_event_names_its_rule_and_what_an_unknown_outcome_means() {
    let lines = Lines::default();
    let writer = lines.clone();
    let subscriber = fmt().json().flatten_event(true).with_max_level(tracing::Level::DEBUG);
    let subscriber = subscriber.with_writer(move || writer.clone()).finish();
    let _logging = tracing::subscriber::set_default(subscriber);
    let strict = Rule { on_unknown: Some(OnUnknown::Quarantine), ..Rule::default() };

    let by_rule = Setup { rule: strict, ..Setup::acts([Act::Succeed, Act::NotRun, Act::HangUp]) }.start();
    for event in 1..=3 {
        by_rule.deliver(event, "m");
        by_rule.answers(event as usize).await;
    }
    let by_default = Setup::default().start();
    by_default.deliver(1, "m");
    by_default.answers(1).await;
    let skipping = Setup { rule: Rule { action: Action::Skip, ..Rule::default() }, ..Setup::default() }.start();
    skipping.deliver(1, "m");
    skipping.answers(1).await;

    let pairs = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
        pairs.iter().map(|(level, value)| ((*level).to_owned(), (*value).to_owned())).collect()
    };
    let settled = [("INFO", "rule[0]"), ("WARN", "rule[0]"), ("ERROR", "rule[0]"), ("INFO", "default")];
    assert_eq!(lines.fields("rule"), pairs(&[&settled[..], &[("DEBUG", "rule[0]")]].concat()));
    let meaning = [("INFO", "quarantine"), ("WARN", "quarantine"), ("ERROR", "quarantine"), ("INFO", "rerun")];
    assert_eq!(lines.fields("on_unknown"), pairs(&meaning));
}
