//! `[pubsub]` and `[reply]`: names, endpoint, emulator.

use reqwest::Url;

use super::Check;
use crate::config::{problem::Origin, reply::Mode};

impl Check<'_> {
    pub(super) fn pubsub(&mut self) {
        self.subscription();
        self.endpoint();
        if self.config.pubsub.lease_extension < std::time::Duration::from_secs(30) {
            let what = "under 30s a short pause of this process already costs a second delivery";
            self.warning("pubsub.lease_extension", what, "use 30s or more outside of tests");
        }
        if self.config.reply.mode == Mode::Chat {
            let what = "is announced for a later version; this one knows only \"none\"";
            self.problem("reply.mode", what, "let the handler post its answers itself");
        }
    }

    fn subscription(&mut self) {
        let config = &self.config.pubsub;
        let (project, subscription) = (config.project.clone(), config.subscription.clone());
        if subscription.is_empty() {
            let fix = "set it to the subscription's id, or to projects/…/subscriptions/…";
            self.problem("pubsub.subscription", "is needed", fix);
        }
        if subscription.contains('/') {
            let parts: Vec<_> = subscription.split('/').collect();
            let ["projects", named, "subscriptions", id] = parts[..] else {
                let what = "must be an id, or a full name like projects/my-project/subscriptions/chat-events";
                self.problem("pubsub.subscription", what, "");
                return;
            };
            if !is_project(named) || !is_id(id) {
                let what = "names no project or subscription that can exist";
                self.problem("pubsub.subscription", what, "copy the name from the subscription's page");
            } else if !project.is_empty() && project != named {
                let what = format!("says {project:?}, but pubsub.subscription names project {named:?}");
                self.problem("pubsub.project", what, "leave it out, or make them agree");
            }
            return;
        }
        if project.is_empty() {
            let fix = "set it to the project of the subscription, or give pubsub.subscription as a full name";
            self.problem("pubsub.project", "is needed", fix);
        } else if !is_project(&project) {
            let what = "must be a project id: small letters, digits and hyphens";
            self.problem("pubsub.project", what, "copy the id, not the name, from the project's page");
        }
        if !subscription.is_empty() && !is_id(&subscription) {
            let what =
                "must be a subscription id: 3 to 255 of letters, digits and -._~+%, a letter first, not \"goog\"";
            self.problem("pubsub.subscription", what, "");
        }
    }

    fn endpoint(&mut self) {
        let endpoint = self.config.pubsub.endpoint.clone();
        if endpoint.is_empty() {
            return;
        }
        let usable = Url::parse(&endpoint).ok().filter(|url| {
            matches!(url.scheme(), "http" | "https")
                && url.has_host()
                && url.path() == "/"
                && url.query().is_none()
                && url.username().is_empty()
        });
        if usable.is_none() {
            let what = "must be http:// or https:// with a host and, if need be, a port; nothing after it";
            let fix = if endpoint.contains("://") {
                "for Google's own service leave it empty".to_owned()
            } else {
                format!("did you mean \"http://{endpoint}\" (an emulator)?")
            };
            self.problem("pubsub.endpoint", what, fix);
            return;
        }
        if self.config.pubsub.is_emulator() {
            if self.environment.in_kubernetes() && !self.config.pubsub.allow_emulator {
                let what = "is an emulator, and this process runs in Kubernetes: events would be read from nowhere";
                let fix = match self.origins.get("pubsub.endpoint") {
                    Some(Origin::Env(name)) => format!("unset {name}, or set pubsub.allow_emulator = true"),
                    _ => "leave it empty, or set pubsub.allow_emulator = true".to_owned(),
                };
                self.problem("pubsub.endpoint", what, fix);
            } else {
                let what = "events come from an emulator, without credentials or encryption";
                self.warning("pubsub.endpoint", what, "for Google's own service leave it empty");
            }
        }
    }
}

/// Generous where emulators are: any length. A domain-scoped id has a dot and a colon.
fn is_project(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.:".contains(c))
}

fn is_id(id: &str) -> bool {
    (3..=255).contains(&id.len())
        && id.starts_with(|c: char| c.is_ascii_alphabetic())
        && !id.starts_with("goog")
        && id.chars().all(|c| c.is_ascii_alphanumeric() || "-._~+%".contains(c))
}
