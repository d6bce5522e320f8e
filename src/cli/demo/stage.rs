//! Where the demonstration plays: an embedded server, or an emulator that runs already.

use std::{
    fs::DirBuilder,
    io,
    net::{Ipv4Addr, SocketAddr},
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
};

use anyhow::Context;
use google_cloud_auth::credentials::{Credentials, anonymous};
use google_cloud_gax::error::rpc::Code;
use google_cloud_pubsub::{
    client::{Publisher, SubscriptionAdmin, TopicAdmin},
    model::Message,
};
use uuid::Uuid;

use crate::{
    cli::{Exit, Failure},
    event::RawEvent,
    pubsub_server::{Admin, PubsubServer},
    source::pubsub,
};

/// A topic, its subscription, and a way to publish.
#[derive(Debug)]
pub(super) struct Stage {
    embedded: Option<PubsubServer>,
    /// `host:port`, what clients take for `PUBSUB_EMULATOR_HOST`.
    pub(super) host: String,
    pub(super) topic: String,
    pub(super) subscription: String,
    publisher: Publisher,
    /// On an emulator: how to delete the subscription that was made for this run.
    own: Option<SubscriptionAdmin>,
}

impl Stage {
    /// Starts a server unless an endpoint is configured; makes topic and subscription; points `config` there.
    ///
    /// With `own` a subscription that an emulator is to have is one of this run alone: an emulator keeps handing
    /// messages to the readers of the last run.
    pub(super) async fn open(config: &mut pubsub::Config, own: bool) -> anyhow::Result<Self> {
        let named = |config: &pubsub::Config| {
            config
                .subscription_name()
                .map_err(|problem| Failure::usage(format!("pubsub.{}: {}", problem.field, problem.message)))
        };
        let topic = named(config)?.replacen("/subscriptions/", "/topics/", 1);
        let own = own && !config.endpoint.is_empty();
        if own {
            config.subscription = format!("{}-{:08x}", config.subscription, Uuid::new_v4().as_fields().0);
        }
        let subscription = named(config)?;
        let embedded = if config.endpoint.is_empty() {
            let server = PubsubServer::start(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
            config.endpoint = server.endpoint();
            Some(server)
        } else {
            None
        };
        let endpoint = config.endpoint().map_err(|error| Failure::usage(format!("pubsub.endpoint {error}")))?;
        if !endpoint.is_plain() {
            let message = "demo publishes invented events: it runs on its own server or on an emulator";
            return Err(Failure::new(Exit::Refused, "not_an_emulator", message).hint("clear pubsub.endpoint").into());
        }
        let endpoint = endpoint.as_str();
        let admin = prepare(endpoint, &topic, &subscription).await.map_err(|error| {
            Failure::unreachable(format!("Pub/Sub at {endpoint} can not be used: {}", error.root_cause()))
        })?;
        let publisher = Publisher::builder(&topic).with_endpoint(endpoint).with_credentials(nobody()).build().await?;
        let host = endpoint.trim_start_matches("http://").to_owned();
        Ok(Self { embedded, host, topic, subscription, publisher, own: own.then_some(admin) })
    }

    /// True for the server in this process.
    pub(super) const fn is_embedded(&self) -> bool {
        self.embedded.is_some()
    }

    /// Hands a message to the publisher; the answer is its message id.
    pub(super) fn publish(&self, raw: &RawEvent) -> impl Future<Output = anyhow::Result<String>> + Send + 'static {
        let message = Message::new().set_data(raw.data.clone()).set_attributes(raw.attributes.clone());
        let published = self.publisher.publish(message);
        async move { published.await.context("the message could not be published") }
    }

    /// A way to have a message that is out delivered a second time; only the embedded server can.
    pub(super) fn again(&self) -> Option<impl FnOnce(&str) -> bool + Send + 'static> {
        let admin = self.embedded.as_ref().map(PubsubServer::admin)?;
        let subscription = self.subscription.clone();
        Some(move |message_id: &str| Admin::deliver_again(&admin, &subscription, message_id))
    }

    /// Messages not acknowledged yet, where that can be seen.
    pub(super) fn unacked(&self) -> Option<usize> {
        let counts = self.embedded.as_ref()?.admin().counts(&self.subscription)?;
        Some(counts.unacked)
    }

    /// Stops the embedded server, or deletes what this run made for itself.
    pub(super) async fn close(self) {
        if let Some(admin) = self.own {
            // An emulator that is gone has forgotten it anyway.
            drop(admin.delete_subscription().set_subscription(&self.subscription).send().await);
        }
        if let Some(server) = self.embedded {
            server.stop().await;
        }
    }
}

/// Makes topic and subscription where they are missing.
async fn prepare(endpoint: &str, topic: &str, subscription: &str) -> anyhow::Result<SubscriptionAdmin> {
    let topics = TopicAdmin::builder().with_endpoint(endpoint).with_credentials(nobody()).build().await?;
    there(topics.create_topic().set_name(topic).send().await)?;
    let admin = SubscriptionAdmin::builder().with_endpoint(endpoint).with_credentials(nobody()).build().await?;
    there(admin.create_subscription().set_name(subscription).set_topic(topic).send().await)?;
    Ok(admin)
}

fn there<T>(made: google_cloud_pubsub::Result<T>) -> anyhow::Result<()> {
    match made {
        Err(error) if error.status().is_none_or(|status| status.code != Code::AlreadyExists) => Err(error.into()),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn nobody() -> Credentials {
    anonymous::Builder::new().build()
}

/// A folder of this run, only for this user; gone with it.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> io::Result<Self> {
        let path = std::env::temp_dir().join(format!("bellhop-demo-{}", Uuid::new_v4().simple()));
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Nothing can be done about a folder that stays.
        drop(std::fs::remove_dir_all(&self.0));
    }
}
