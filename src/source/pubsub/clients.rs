//! Clients of the official library, made anew for each stream: a fresh stream on a dead connection would be dead too.

use std::path::PathBuf;

use google_cloud_auth::credentials::{self as auth, Credentials};
use google_cloud_gax::{client_builder::Error as BuildError, retry_policy::NeverRetry};
use google_cloud_pubsub::client::{Publisher, Subscriber, SubscriptionAdmin, TopicAdmin};
use serde_json::Value;
use tokio::sync::Mutex;

use super::{
    endpoint::Endpoint,
    reason::{Failure, Reason},
};

/// Makes clients for one endpoint. Credentials are shared until they are doubted, then read from disk again.
#[derive(Debug)]
pub(super) struct Clients {
    endpoint: Endpoint,
    credentials_file: PathBuf,
    credentials: Mutex<Option<Credentials>>,
}

impl Clients {
    pub(super) fn new(endpoint: Endpoint, credentials_file: PathBuf) -> Self {
        Self { endpoint, credentials_file, credentials: Mutex::new(None) }
    }

    /// For one stream.
    pub(super) async fn subscriber(&self) -> Result<Subscriber, Failure> {
        let mut builder = Subscriber::builder().with_credentials(self.credentials().await?);
        if !self.endpoint.as_str().is_empty() {
            builder = builder.with_endpoint(self.endpoint.as_str());
        }
        builder.build().await.map_err(not_built)
    }

    /// For the probe, which does its own retries.
    pub(super) async fn admin(&self) -> Result<SubscriptionAdmin, Failure> {
        let builder = SubscriptionAdmin::builder().with_credentials(self.credentials().await?);
        let mut builder = builder.with_retry_policy(NeverRetry);
        if !self.endpoint.as_str().is_empty() {
            builder = builder.with_endpoint(self.endpoint.as_str());
        }
        builder.build().await.map_err(not_built)
    }

    /// For publishing to one topic.
    pub(super) async fn publisher(&self, topic: &str) -> Result<Publisher, Failure> {
        let mut builder = Publisher::builder(topic).with_credentials(self.credentials().await?);
        if !self.endpoint.as_str().is_empty() {
            builder = builder.with_endpoint(self.endpoint.as_str());
        }
        builder.build().await.map_err(not_built)
    }

    /// For looking at topics.
    pub(super) async fn topics(&self) -> Result<TopicAdmin, Failure> {
        let builder = TopicAdmin::builder().with_credentials(self.credentials().await?);
        let mut builder = builder.with_retry_policy(NeverRetry);
        if !self.endpoint.as_str().is_empty() {
            builder = builder.with_endpoint(self.endpoint.as_str());
        }
        builder.build().await.map_err(not_built)
    }

    /// The next client reads its credentials anew: a key may have been replaced on disk.
    pub(super) async fn doubt_credentials(&self) {
        self.credentials.lock().await.take();
    }

    async fn credentials(&self) -> Result<Credentials, Failure> {
        let mut cached = self.credentials.lock().await;
        if let Some(credentials) = cached.as_ref() {
            return Ok(credentials.clone());
        }
        let fresh = self.read_credentials().await?;
        Ok(cached.insert(fresh).clone())
    }

    async fn read_credentials(&self) -> Result<Credentials, Failure> {
        if self.endpoint.is_plain() {
            return Ok(auth::anonymous::Builder::new().build());
        }
        let built = if self.credentials_file.as_os_str().is_empty() {
            auth::Builder::default().build()
        } else {
            let unusable =
                |why: String| Failure::new(Reason::Credentials, format!("{}: {why}", self.credentials_file.display()));
            let text = tokio::fs::read(&self.credentials_file).await.map_err(|error| unusable(error.to_string()))?;
            let json: Value = serde_json::from_slice(&text).map_err(|_| unusable("not JSON".into()))?;
            match json["type"].as_str() {
                Some("service_account") => auth::service_account::Builder::new(json).build(),
                Some("authorized_user") => auth::user_account::Builder::new(json).build(),
                Some("external_account") => auth::external_account::Builder::new(json).build(),
                Some("impersonated_service_account") => auth::impersonated::Builder::new(json).build(),
                _ => return Err(unusable("its \"type\" is not supported".into())),
            }
        };
        built.map_err(|error| Failure::new(Reason::Credentials, error.to_string()))
    }
}

fn not_built(error: BuildError) -> Failure {
    let reason = if error.is_default_credentials() { Reason::Credentials } else { Reason::Unreachable };
    Failure::new(reason, error.to_string())
}
