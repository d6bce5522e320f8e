//! Events as Google Chat makes them, and whoever claims them.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use bellhop::{
    claim::{Budget, Claim, ClaimIntent, ClaimRef, Identity, Key, Lease, Nonce},
    event::{EventId, Fingerprint},
};
use chrono::Utc;
use uuid::Uuid;

pub(crate) const LEASE: Lease = Lease::new(Duration::from_secs(60));
pub(crate) const RETENTION: Duration = Duration::from_secs(10 * 86_400);
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
pub(crate) const BUDGET: Budget = Budget { max_failures: 8, max_lost: 3 };

/// A client of a store.
#[async_trait]
pub(crate) trait Claimer: Send + Sync {
    /// `None` = somebody else has it.
    async fn claim(&self, intent: &Arc<ClaimIntent>) -> anyhow::Result<Option<Held>>;

    async fn complete(&self, held: Held) -> anyhow::Result<()>;
}

/// What a completion needs.
pub(crate) enum Held {
    Claim(Box<Claim>),
    Reference(ClaimRef),
}

/// An event of this moment: its key begins with the time, its id has some 60 bytes.
pub(crate) fn identity() -> Identity {
    let random = Uuid::new_v4();
    let mut key = random.into_bytes();
    key[..6].copy_from_slice(&Utc::now().timestamp_millis().to_be_bytes()[2..]);
    let id = random.simple().to_string();
    let (message, version) = id.split_at(16);
    Identity {
        key: Key::from(Uuid::from_bytes(key)),
        event_id: EventId::new(format!("spaces/AAQAb3nchmk/messages/{message}.{version}")),
        event_type: "MESSAGE".to_owned(),
        fingerprint: Fingerprint([1; 17]),
    }
}

/// A claim by a rule that says `rerun`, from a process that holds its suspect permit.
pub(crate) fn intent(event: Identity) -> Arc<ClaimIntent> {
    Arc::new(ClaimIntent {
        event,
        nonce: Nonce::random(),
        strict: false,
        budget: BUDGET,
        timeout: TIMEOUT,
        born: Utc::now(),
        suspect: true,
        raw: Arc::default(),
    })
}
