//! `[store]`: a backend that can be opened, and that the deployment can share.

use std::str::FromStr;

use sqlx::postgres::PgConnectOptions;

use super::Check;
use crate::config::{Profile, store::Backend};

impl Check<'_> {
    pub(super) fn store(&mut self) {
        self.url();
        if !self.config.store.migrate_url.is_empty() && !is_postgres(self.config.store.migrate_url.expose()) {
            self.problem("store.migrate_url", NOT_POSTGRES, ESCAPE);
        }
        let backend = self.config.store.backend();
        if matches!(backend, Backend::Sqlite) && self.config.store.path.as_os_str().is_empty() {
            self.problem("store.path", "must be the path of the database file", "");
        }
        if matches!(self.profile, Profile::Run | Profile::Demo) && matches!(backend, Backend::Sqlite | Backend::Memory)
        {
            self.single_process(backend);
        }
    }

    fn url(&mut self) {
        let store = &self.config.store;
        let (backend, given, url) = (store.backend, self.given("store.url"), store.url.expose());
        let wanted = match backend {
            Backend::Postgres => true,
            Backend::Auto => given || self.profile != Profile::Demo,
            Backend::Sqlite | Backend::Memory => {
                if !url.is_empty() {
                    let what = format!("is not used: store.backend is {:?}", backend.as_str());
                    self.warning("store.url", what, "leave one of them out");
                }
                return;
            }
        };
        // A URL that could not be read is not missed again in other words.
        if !wanted || self.is_spoiled("store.url") {
            return;
        }
        if url.is_empty() && given {
            let fix = "fill it, or leave it out and name another store.backend";
            self.problem("store.url", "is given but empty", fix);
        } else if url.is_empty() && backend == Backend::Postgres {
            let fix = "set store.url, store.url_file or DATABASE_URL";
            self.problem("store.url", "is needed by store.backend \"postgres\"", fix);
        } else if url.is_empty() {
            let fix = "set store.url (or DATABASE_URL) for PostgreSQL, or store.backend = \"sqlite\" for one process";
            self.problem("store.backend", "needs a URL: nobody said where claims are kept", fix);
        } else if !is_postgres(url) {
            self.problem("store.url", NOT_POSTGRES, ESCAPE);
        }
    }

    fn single_process(&mut self, backend: Backend) {
        let (store, name) = (&self.config.store, backend.as_str());
        let (replicas, single) = (store.replicas, store.single_process);
        let strict = self.config.rules().any_strict();
        if replicas > 1 {
            let what = format!("needs a store that processes share; {name} serves one");
            self.problem("store.replicas", what, "use store.backend = \"postgres\", or set it to 1");
        }
        if self.environment.in_kubernetes() && !single && self.profile == Profile::Run {
            let what = format!("{name:?} serves one process, and Kubernetes may run two at once (rollouts, too)");
            let fix = "use \"postgres\", or set store.single_process = true and never scale up";
            self.problem("store.backend", what, fix);
        }
        if backend == Backend::Memory && strict {
            let what = "\"memory\" forgets what began: on_unknown = \"quarantine\" can not be kept";
            self.problem(
                "store.backend",
                what,
                "use \"postgres\" or \"sqlite\", or on_unknown = \"rerun\" in all rules",
            );
        } else if backend == Backend::Memory {
            let what = "\"memory\" forgets everything when the process ends: events may be handled twice";
            self.warning("store.backend", what, "for development only");
        }
    }
}

const NOT_POSTGRES: &str = "must be a PostgreSQL URL: postgres://user:password@host:5432/database";
const ESCAPE: &str = "percent-encode special characters in user and password";

fn is_postgres(url: &str) -> bool {
    let scheme = url.split_once("://").map(|(scheme, _)| scheme);
    matches!(scheme, Some("postgres" | "postgresql")) && PgConnectOptions::from_str(url).is_ok()
}
