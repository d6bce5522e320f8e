//! Acks and deadline changes, unary or on a stream, and how their results are told.
//!
//! Without exactly-once an id that is not valid is passed over in silence, as Google does. With it every id has its own
//! result: in the stream's confirmations, or in the `google.rpc.ErrorInfo` of a refused unary call.

use std::{collections::HashMap, time::Duration};

use prost::Message as _;
use tonic::{Code, Status};

use super::{
    faults::{ModAck, Order},
    proto::{ErrorInfo, RpcStatus},
    shared::Shared,
    subscription::Verdict,
};

pub(super) const INVALID_ACK_ID: &str = "PERMANENT_FAILURE_INVALID_ACK_ID";
pub(super) const UNAVAILABLE: &str = "TRANSIENT_FAILURE_SERVICE_UNAVAILABLE";
/// What Google says with it.
const SOME_INVALID: &str = "Some acknowledgement ids in the request were invalid. This could be because the \
                            acknowledgement ids have expired or the acknowledgement ids were malformed.";

/// The results of one call, by id.
#[derive(Debug, Default)]
pub(super) struct Results {
    pub(super) exactly_once: bool,
    pub(super) done: Vec<String>,
    /// Id and reason. Empty without exactly-once.
    pub(super) failed: Vec<(String, &'static str)>,
}

impl Results {
    fn note(&mut self, id: String, verdict: Verdict) {
        match verdict {
            Verdict::Invalid if self.exactly_once => self.failed.push((id, INVALID_ACK_ID)),
            Verdict::Invalid | Verdict::Done => self.done.push(id),
        }
    }

    /// The answer of a unary call.
    pub(super) fn into_status(self) -> Result<(), Status> {
        let Some((_, reason)) = self.failed.first() else { return Ok(()) };
        let transient = self.failed.iter().all(|(_, reason)| reason.starts_with("TRANSIENT"));
        let (code, message) =
            if transient { (Code::Unavailable, *reason) } else { (Code::InvalidArgument, SOME_INVALID) };
        let info = ErrorInfo {
            reason: "EXACTLY_ONCE_ACKID_FAILURE".to_owned(),
            domain: "pubsub.googleapis.com".to_owned(),
            metadata: self.failed.iter().map(|(id, why)| (id.clone(), (*why).to_owned())).collect::<HashMap<_, _>>(),
        };
        let any = prost_types::Any {
            type_url: "type.googleapis.com/google.rpc.ErrorInfo".to_owned(),
            value: info.encode_to_vec(),
        };
        let details = RpcStatus { code: code.into(), message: message.to_owned(), details: vec![any] };
        Err(Status::with_details(code, message, details.encode_to_vec().into()))
    }
}

/// Acknowledges `ids`, unless `order` says to do nothing.
pub(super) fn acknowledge(
    shared: &Shared,
    subscription: &str,
    ids: Vec<String>,
    order: Order,
) -> Result<Results, Status> {
    shared.with(|broker, now| {
        let subscription = broker.subscription(subscription, now)?;
        let exactly_once = subscription.settings().exactly_once;
        let mut results = Results { exactly_once, ..Results::default() };
        for id in ids {
            match shared.faults.ack_failure().filter(|_| exactly_once) {
                _ if order == Order::Swallow => results.done.push(id),
                Some(reason) => results.failed.push((id, reason)),
                None => {
                    let verdict = subscription.acknowledge(&id);
                    results.note(id, verdict);
                }
            }
        }
        Ok(results)
    })
}

/// Changes the deadlines of `ids`, unless `order` says to do nothing.
pub(super) fn modify(shared: &Shared, modack: ModAck, extension: Duration, order: Order) -> Result<Results, Status> {
    shared.faults.record(modack.clone());
    shared.with(|broker, now| {
        let subscription = broker.subscription(&modack.subscription, now)?;
        let mut results = Results { exactly_once: subscription.settings().exactly_once, ..Results::default() };
        for id in modack.ack_ids {
            match order {
                Order::Swallow => results.done.push(id),
                Order::Serve => {
                    let verdict = subscription.modify(&id, extension, now.instant);
                    results.note(id, verdict);
                }
            }
        }
        Ok(results)
    })
}
