//! Clients of the official library, made anew for each stream: a fresh stream on a dead connection would be dead too.

use std::path::PathBuf;

use google_cloud_auth::credentials::{self as auth, CacheableResource, Credentials};
use google_cloud_gax::{client_builder::Error as BuildError, retry_policy::NeverRetry};
use google_cloud_pubsub::client::{Publisher, Subscriber, SubscriptionAdmin, TopicAdmin};
use googleapis_tonic_google_pubsub_v1::google::pubsub::v1::{
    GetSubscriptionRequest, ModifyAckDeadlineRequest, StreamingPullRequest, StreamingPullResponse, Subscription,
    subscriber_client::SubscriberClient,
};
use serde_json::Value;
use tokio::sync::Mutex;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{
    Request, Streaming,
    codegen::http::uri::InvalidUri,
    metadata::MetadataMap,
    transport::{Channel, ClientTlsConfig},
};

use super::{
    endpoint::Endpoint,
    reason::{Failure, Reason},
};

/// The largest response that is read: larger than any batch of the largest messages.
const MAX_RESPONSE: usize = 64 << 20;

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

    /// For the probe: gRPC as the streams, which the administration clients of the library are not.
    pub(super) async fn caller(&self) -> Result<Caller, Failure> {
        let credentials = self.credentials().await?;
        let not_uri = |error: InvalidUri| Failure::new(Reason::Unreachable, error.to_string());
        let unusable = |error: tonic::transport::Error| Failure::new(Reason::Unreachable, error.to_string());
        let origin = self.endpoint.origin().parse().map_err(not_uri)?;
        let address = self.endpoint.address().to_owned();
        let mut channel = Channel::from_shared(address).map_err(not_uri)?.origin(origin);
        if !self.endpoint.is_plain() {
            channel = channel.tls_config(ClientTlsConfig::new().with_enabled_roots()).map_err(unusable)?;
        }
        let client = SubscriberClient::new(channel.connect_lazy()).max_decoding_message_size(MAX_RESPONSE);
        Ok(Caller { client, credentials })
    }

    /// For making and looking up subscriptions; over HTTP/1.1.
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

/// Calls the server by itself, where the library can not.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    client: SubscriberClient<Channel>,
    credentials: Credentials,
}

impl Caller {
    /// Succeeds when the subscription exists and may be looked at.
    pub(super) async fn get_subscription(&mut self, name: &str) -> Result<Subscription, Failure> {
        let request = GetSubscriptionRequest { subscription: name.to_owned() };
        let request = self.request(name, request).await?;
        let answer = self.client.get_subscription(request).await.map_err(|status| Failure::from(&status))?;
        Ok(answer.into_inner())
    }

    /// Opens a stream; the first of `requests` says which. Returns with the first response of the server.
    pub(super) async fn streaming_pull(
        &mut self,
        name: &str,
        requests: ReceiverStream<StreamingPullRequest>,
    ) -> Result<Streaming<StreamingPullResponse>, Failure> {
        let request = self.request(name, requests).await?;
        let answer = self.client.streaming_pull(request).await.map_err(|status| Failure::from(&status))?;
        Ok(answer.into_inner())
    }

    /// Sets the time after which messages come again; 0 gives them back. At most 1,000 at once.
    pub(super) async fn modify_ack_deadline(
        &mut self,
        name: &str,
        ack_ids: Vec<String>,
        seconds: i32,
    ) -> Result<(), Failure> {
        let request =
            ModifyAckDeadlineRequest { subscription: name.to_owned(), ack_ids, ack_deadline_seconds: seconds };
        let request = self.request(name, request).await?;
        self.client.modify_ack_deadline(request).await.map(drop).map_err(|status| Failure::from(&status))
    }

    /// With credentials, and the header by which Google finds the way to the subscription.
    async fn request<T>(&self, name: &str, message: T) -> Result<Request<T>, Failure> {
        let refused = |why: String| Failure::new(Reason::Credentials, why);
        let mut headers = match self.credentials.headers(Default::default()).await {
            Ok(CacheableResource::New { data, .. }) => data,
            // Only those who already had them are told so.
            Ok(CacheableResource::NotModified) => return Err(refused("there are no credentials".into())),
            Err(error) => return Err(refused(error.to_string())),
        };
        let route = format!("subscription={name}").parse().map_err(|_| refused("the name is no header".into()))?;
        headers.insert("x-goog-request-params", route);
        let mut request = Request::new(message);
        *request.metadata_mut() = MetadataMap::from_headers(headers);
        Ok(request)
    }
}

fn not_built(error: BuildError) -> Failure {
    let reason = if error.is_default_credentials() { Reason::Credentials } else { Reason::Unreachable };
    Failure::new(reason, error.to_string())
}
