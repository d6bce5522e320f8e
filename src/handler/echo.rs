//! The built-in handler: answers with the event's own text, and fails on purpose when told to.
//!
//! Whether and how an event fails is a function of its id, so every copy and every replica sees the same.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::time::sleep;

use crate::{
    event::{Event, EventId},
    handler::{Handled, Handler, HandlerContext, HandlerError},
    outcome::Detail,
};

/// Where the text of a message stands, by the shape of the event.
const TEXTS: [&str; 3] = ["/message/text", "/chat/messagePayload/message/text", "/chat/appCommandPayload/message/text"];

/// One in so many failing events never succeeds.
const HOPELESS: u32 = 10;

/// What happens to an event on purpose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It succeeds at once.
    Succeeds,
    /// It fails so often, then succeeds.
    Recovers {
        /// Once or twice.
        failures: u32,
    },
    /// It never succeeds.
    NeverSucceeds,
}

/// Echoes messages.
#[derive(Debug, Clone, Default)]
pub struct EchoHandler {
    failing: f64,
    delay: Duration,
}

impl EchoHandler {
    /// A handler that always succeeds, at once.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets about `ratio` (0 to 1) of all events fail: most of them once or twice, every tenth for ever.
    #[must_use]
    pub const fn failing(mut self, ratio: f64) -> Self {
        self.failing = ratio;
        self
    }

    /// Takes up to `longest` for each event.
    #[must_use]
    pub const fn taking(mut self, longest: Duration) -> Self {
        self.delay = longest;
        self
    }

    /// What happens to the event with this id.
    #[must_use]
    pub fn fate(&self, id: &EventId) -> Fate {
        let [chance, kind, _] = draws(id);
        if f64::from(chance) >= self.failing * f64::from(u32::MAX) {
            return Fate::Succeeds;
        }
        match kind % HOPELESS {
            0 => Fate::NeverSucceeds,
            odd if odd % 2 == 1 => Fate::Recovers { failures: 1 },
            _ => Fate::Recovers { failures: 2 },
        }
    }
}

#[async_trait]
impl Handler for EchoHandler {
    async fn handle(&self, event: &Event, cx: &HandlerContext) -> Result<Handled, HandlerError> {
        let [.., share] = draws(&event.id);
        sleep(self.delay.mul_f64(f64::from(share) / f64::from(u32::MAX))).await;
        let fails = match self.fate(&event.id) {
            Fate::Succeeds => false,
            Fate::Recovers { failures } => cx.attempt <= failures,
            Fate::NeverSucceeds => true,
        };
        if fails {
            let what = "echo failed on purpose".to_owned();
            return Err(HandlerError::Failed { what, after: None, detail: Detail::default() });
        }
        Ok(Handled { reply: reply(&event.body), reply_unreadable: false })
    }
}

/// A message with the text of the event, where it has one.
fn reply(body: &[u8]) -> Option<Bytes> {
    let event: Value = serde_json::from_slice(body).ok()?;
    let text = TEXTS.iter().find_map(|path| event.pointer(path)?.as_str()).filter(|text| !text.is_empty())?;
    Some(Bytes::from(json!({ "text": text }).to_string()))
}

/// Three numbers that depend on the id alone.
fn draws(id: &EventId) -> [u32; 3] {
    let digest: [u8; 32] = Sha256::new_with_prefix("bellhop.echo.v1\0").chain_update(id.as_str()).finalize().into();
    [0, 4, 8].map(|at| u32::from_be_bytes([digest[at], digest[at + 1], digest[at + 2], digest[at + 3]]))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;
    use crate::handler::fixture;

    fn events(count: u32) -> impl Iterator<Item = Event> {
        (0..count).map(|n| {
            let mut event = fixture::event();
            event.id = EventId::new(format!("bh1-ix-{n:032x}"));
            event
        })
    }

    async fn succeeds(handler: &EchoHandler, event: &Event, attempt: u32) -> bool {
        handler.handle(event, &HandlerContext { attempt, ..fixture::cx() }).await.is_ok()
    }

    #[tokio::test]
    async fn the_reply_is_the_text_of_the_message() {
        let echo = async |body: &'static str| {
            let mut event = fixture::event();
            event.body = Bytes::from_static(body.as_bytes());
            EchoHandler::new().handle(&event, &fixture::cx()).await.unwrap().reply
        };

        assert_eq!(echo(r#"{"message":{"text":"a\"b"}}"#).await, Some(Bytes::from_static(br#"{"text":"a\"b"}"#)));
        assert_eq!(
            echo(r#"{"chat":{"messagePayload":{"message":{"text":"x"}}}}"#).await,
            Some(Bytes::from_static(br#"{"text":"x"}"#))
        );
        for silent in
            ["", "[]", r#"{"message":{"text":""}}"#, r#"{"message":{"text":7}}"#, r#"{"type":"ADDED_TO_SPACE"}"#]
        {
            assert_eq!(echo(silent).await, None, "{silent}");
        }
    }

    #[tokio::test]
    async fn an_event_fails_once_or_twice_or_for_ever_as_its_id_says() {
        let handler = EchoHandler::new().failing(0.5);
        for event in events(200) {
            let failures = match handler.fate(&event.id) {
                Fate::Succeeds => 0,
                Fate::Recovers { failures } => failures,
                Fate::NeverSucceeds => u32::MAX,
            };
            for attempt in 1..=4 {
                assert_eq!(succeeds(&handler, &event, attempt).await, attempt > failures, "{}", event.id);
            }
        }
    }

    #[test]
    fn the_ratio_is_kept_and_every_kind_of_failure_occurs() {
        let handler = EchoHandler::new().failing(0.1);
        let fates: Vec<_> = events(10_000).map(|event| handler.fate(&event.id)).collect();
        let share = |wanted| fates.iter().filter(|fate| **fate == wanted).count();

        assert!((9_000 - 150..9_000 + 150).contains(&share(Fate::Succeeds)));
        assert!((60..140).contains(&share(Fate::NeverSucceeds)));
        assert!(share(Fate::Recovers { failures: 1 }) > 300 && share(Fate::Recovers { failures: 2 }) > 300);
    }

    #[test]
    fn nothing_fails_at_ratio_0_and_everything_at_ratio_1() {
        let (never, always) = (EchoHandler::new(), EchoHandler::new().failing(1.0));

        assert!(events(1_000).all(|event| never.fate(&event.id) == Fate::Succeeds));
        assert!(events(1_000).all(|event| always.fate(&event.id) != Fate::Succeeds));
    }

    #[tokio::test(start_paused = true)]
    async fn it_takes_as_long_as_its_id_says_and_no_longer_than_told() {
        let handler = EchoHandler::new().taking(Duration::from_secs(10));
        let (started, wall) = (tokio::time::Instant::now(), Instant::now());
        for event in events(10) {
            assert!(succeeds(&handler, &event, 1).await);
        }

        assert!((Duration::from_secs(10)..Duration::from_secs(100)).contains(&started.elapsed()));
        assert!(wall.elapsed() < Duration::from_secs(5));
    }
}
