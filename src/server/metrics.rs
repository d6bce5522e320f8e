//! `/metrics`: the Prometheus text format.

use axum::{
    extract::State,
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use prometheus::{Encoder, TEXT_FORMAT, TextEncoder};

use crate::metrics::Metrics;

pub(super) async fn scrape(State(metrics): State<Metrics>) -> Response {
    let mut text = Vec::with_capacity(64 * 1024);
    match TextEncoder::new().encode(&metrics.registry().gather(), &mut text) {
        Ok(()) => ([(CONTENT_TYPE, TEXT_FORMAT)], text).into_response(),
        Err(error) => {
            tracing::error!(%error, "Could not encode the metrics");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
