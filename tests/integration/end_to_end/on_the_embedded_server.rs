//! Every scenario against the embedded server.

use super::{Broker, duplicates, failures, kill_run, outages, payloads, samples, start, stopping};

#[tokio::test]
async fn an_event_published_twice_is_handled_once_and_both_copies_are_acked() {
    duplicates::published_twice(Broker::embedded().await).await;
}

#[tokio::test]
async fn two_replicas_handle_each_event_once_and_miss_none() {
    duplicates::two_replicas(Broker::embedded().await).await;
}

#[tokio::test]
async fn a_handler_that_fails_twice_is_called_a_third_time() {
    failures::fails_twice(Broker::embedded().await).await;
}

#[tokio::test]
async fn a_timeout_under_rerun_is_run_again() {
    failures::timeout_under_rerun(Broker::embedded().await).await;
}

#[tokio::test]
async fn a_timeout_under_strict_is_never_run_again() {
    failures::timeout_under_strict(Broker::embedded().await).await;
}

#[tokio::test]
async fn a_cut_answer_is_run_again_only_under_rerun() {
    failures::cut_answer(Broker::embedded().await).await;
}

#[tokio::test]
async fn malformed_payloads_are_quarantined_and_acked() {
    payloads::malformed(Broker::embedded().await).await;
}

#[tokio::test]
async fn sigterm_lets_running_handlers_finish_and_exits_0() {
    stopping::drains(Broker::embedded().await).await;
}

#[tokio::test]
async fn sigterm_in_the_first_500_ms_ends_it_at_once() {
    stopping::during_start(Broker::embedded().await).await;
}

#[tokio::test]
async fn a_second_sigterm_aborts() {
    stopping::second_signal(Broker::embedded().await).await;
}

#[tokio::test]
async fn postgres_down_for_20_s_pauses_intake_and_loses_nothing() {
    outages::postgres_down(Broker::embedded().await).await;
}

#[tokio::test]
async fn a_handler_down_for_30_s_costs_no_failure() {
    outages::handler_down(Broker::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_run_under_rerun_completes_every_event() {
    kill_run::rerun(Broker::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kill_run_under_strict_calls_no_event_twice() {
    kill_run::strict(Broker::embedded().await).await;
}

#[tokio::test]
async fn it_is_ready_soon_after_its_start() {
    start::to_ready(Broker::embedded().await).await;
}

#[tokio::test]
async fn every_sample_is_handled_by_the_python_example_or_quarantined_as_undecodable() {
    samples::through_the_python_handler(Broker::embedded().await).await;
}
