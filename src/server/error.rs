//! Answers for what is not there. JSON, and nothing of the request in it.

use axum::{Json, http::StatusCode, response::IntoResponse};
use serde_json::json;

pub(super) async fn not_found() -> impl IntoResponse {
    let body = json!({"error": {"code": "not_found", "message": "no such endpoint"}});
    (StatusCode::NOT_FOUND, Json(body))
}

/// axum adds the `Allow` header.
pub(super) async fn method_not_allowed() -> impl IntoResponse {
    let body = json!({"error": {"code": "method_not_allowed", "message": "only GET and HEAD"}});
    (StatusCode::METHOD_NOT_ALLOWED, Json(body))
}
