//! The health page of a program that has to synchronize first.

use axum::{
    http::{StatusCode, header::CONTENT_TYPE},
    response::{IntoResponse, Response},
};
use serde_json::{Value, json};

/// 503 until the program is ready, then 200. `details` are fields beside its status.
pub fn health_page(is_ready: bool, details: Value) -> Response {
    let (code, status) = match is_ready {
        true => (StatusCode::OK, "healthy"),
        false => (StatusCode::SERVICE_UNAVAILABLE, "starting"),
    };
    let mut body = json!({"status": status});
    if let (Value::Object(body), Value::Object(details)) = (&mut body, details) {
        body.extend(details);
    }
    (code, [(CONTENT_TYPE, "application/json")], format!("{body}\n")).into_response()
}
