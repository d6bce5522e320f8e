//! The loop that reads one stream. It does nothing else, and nothing may cut it.
//!
//! Cutting a wait on the client's stream loses what it was opening: the call is abandoned, and the messages sent on it
//! stay away until their deadline. An idle stream is being opened all the time, since the client counts it as open only
//! once something came. So this file races that wait against nothing, not against a clock and not against a stop; the
//! stream's own shutdown token ends it. A test reads this file and holds it to that.

use google_cloud_pubsub::subscriber::{MessageStream, handler::Handler};

use super::{
    inlet::Inlet,
    pulse::Pulse,
    reason::{Failure, Reason},
};

/// Hands over every message until the stream ends. Between two messages it waits for nothing but their budget. What
/// comes while the source is stopping is kept in `kept`.
pub(super) async fn read(stream: &mut MessageStream, inlet: &Inlet, pulse: &Pulse, kept: &mut Vec<Handler>) -> Failure {
    loop {
        pulse.listens();
        let next = stream.next().await;
        pulse.rests();
        match next {
            Some(Ok((message, handle))) => {
                pulse.hears();
                kept.extend(inlet.hand_over(message, handle).await);
            }
            Some(Err(error)) => return Failure::from(&error),
            None => return Failure::new(Reason::Ended, "the stream ended"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    /// The source text before its tests, without comments.
    fn code(path: &Path) -> String {
        let text = fs::read_to_string(path).unwrap();
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        code.lines().filter(|line| !line.trim_start().starts_with("//")).collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn the_wait_on_the_stream_is_raced_against_nothing() {
        let here = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/source/pubsub");

        let reader = code(&here.join("reader.rs"));
        assert!(reader.contains("stream.next().await"));
        for race in ["select", "timeout", "sleep", "now_or_never", "poll", "race", "cancel", "abort", "spawn", "join"] {
            assert!(!reader.contains(race), "reader.rs must not use {race}");
        }
        for entry in fs::read_dir(&here).unwrap() {
            let path = entry.unwrap().path();
            if path.ends_with("reader.rs") {
                continue;
            }
            let code = code(&path);
            assert!(!code.contains(".next().await"), "{} waits on a stream", path.display());
            for line in code.lines().filter(|line| line.contains("reader::read(")) {
                assert!(line.trim_end().ends_with(".await;"), "{}: the reader is not awaited plainly", path.display());
            }
        }
    }
}
