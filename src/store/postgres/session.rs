//! What a connection must be before it is trusted.

use super::statement::Wire;

/// The setting that marks a connection as ours: only a server that got it from us at connect knows its value.
pub(super) const MARKER: &str = "bellhop.session";

/// What a server says of itself.
#[derive(Debug)]
pub(super) struct Session {
    isolation: String,
    in_recovery: bool,
    read_only: String,
    synchronous_commit: String,
    pub(super) marker: Option<String>,
}

impl Session {
    /// Why claims must not be kept here, if so.
    pub(super) fn unfit(&self) -> Option<String> {
        if self.in_recovery {
            return Some("it is a standby in recovery".to_owned());
        }
        if self.read_only != "off" {
            return Some("default_transaction_read_only is on".to_owned());
        }
        if self.isolation != "read committed" {
            return Some(format!("default_transaction_isolation is {}, not read committed", self.isolation));
        }
        if !["on", "remote_apply"].contains(&self.synchronous_commit.as_str()) {
            return Some(format!("synchronous_commit is {}, not on", self.synchronous_commit));
        }
        None
    }
}

/// Asks for everything that is asserted at connect.
pub(super) async fn check(wire: Wire<'_>) -> Result<Session, sqlx::Error> {
    sqlx::query_as!(
        Session,
        r#"SELECT current_setting('default_transaction_isolation') AS "isolation!",
            pg_is_in_recovery() AS "in_recovery!",
            current_setting('default_transaction_read_only') AS "read_only!",
            current_setting('synchronous_commit') AS "synchronous_commit!",
            current_setting('bellhop.session', true) AS marker"#
    )
    .fetch_one(wire)
    .await
}

/// Start time and timeline of the server.
pub(super) async fn server_identity(wire: Wire<'_>) -> Result<String, sqlx::Error> {
    sqlx::query_scalar!(r#"SELECT server_identity() AS "identity!""#).fetch_one(wire).await
}
