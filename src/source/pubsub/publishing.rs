//! The other direction, for people who try things out: publishing to the topic of a subscription.

use std::time::Duration;

use google_cloud_pubsub::{
    Error,
    client::{Publisher, TopicAdmin},
    model::Message,
};
use tokio::time;

use super::{
    Clients, Config,
    config::is_name,
    reason::{Failure, Reason},
    request_error::RequestError,
};
use crate::event::RawEvent;

/// How long one request may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A topic that can be published to.
#[derive(Debug)]
pub struct Topic {
    name: String,
    publisher: Publisher,
}

impl Topic {
    /// The topic called `name` (an id in the configured project, or a full name); without one, the topic that the
    /// configured subscription listens to. With `create`, topic and subscription are made when they do not exist.
    ///
    /// # Errors
    /// Topic or server is not there, or the name can not be told.
    pub async fn open(config: &Config, name: Option<&str>, create: bool) -> Result<Self, RequestError> {
        Self::find(config, name, create).await.map_err(RequestError::of_publisher)
    }

    async fn find(config: &Config, name: Option<&str>, create: bool) -> Result<Self, RequestError> {
        let clients = Clients::new(config.endpoint()?, config.credentials_file.clone());
        let name = match name {
            Some(name) => Some(Self::full_name(config, name)?),
            None if create => Some(Self::full_name(config, &default_topic(config)?)?),
            None => None,
        };
        let name = match name {
            Some(name) => {
                if create {
                    make(&clients, config, &name).await?;
                }
                name
            }
            None => topic_of(&clients, config).await?,
        };
        must_exist(&clients, &name).await?;
        let publisher = clients.publisher(&name).await?;
        Ok(Self { name, publisher })
    }

    /// The full name of the topic called `name`: an id in the configured project, or a full name.
    ///
    /// # Errors
    /// It is neither, or no project is configured.
    pub fn full_name(config: &Config, name: &str) -> Result<String, RequestError> {
        let malformed =
            || RequestError::Unclear(format!("topic is \"{name}\": give an id, or projects/<project>/topics/<id>"));
        let parts: Vec<&str> = name.split('/').collect();
        let (project, id) = match parts[..] {
            ["projects", project, "topics", id] => (project.to_owned(), id),
            [id] => (project(config)?, id),
            _ => return Err(malformed()),
        };
        if is_name(&project) && is_name(id) { Ok(format!("projects/{project}/topics/{id}")) } else { Err(malformed()) }
    }

    /// Its full name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Publishes one message and gives the id that Pub/Sub gave it.
    ///
    /// # Errors
    /// It was not confirmed; it may have been published all the same.
    pub async fn publish(&self, raw: &RawEvent) -> Result<String, RequestError> {
        let message = Message::new()
            .set_data(raw.data.clone())
            .set_attributes(raw.attributes.clone())
            .set_ordering_key(&raw.ordering_key);
        let failure = match time::timeout(TIMEOUT, self.publisher.publish(message)).await {
            Ok(Ok(id)) => return Ok(id),
            Ok(Err(error)) => match rpc(&error) {
                Some(error) => Failure::from(error),
                None => Failure::new(Reason::Other, error.to_string()),
            },
            Err(_) => Failure::new(Reason::Timeout, "no answer in time"),
        };
        Err(RequestError::from(failure).of_publisher())
    }
}

/// The call behind an error of the publisher, however deep.
fn rpc<'a>(error: &'a (dyn std::error::Error + 'static)) -> Option<&'a Error> {
    use google_cloud_pubsub::error::PublishError as Theirs;
    if let Some(Theirs::Rpc(source)) = error.downcast_ref::<Theirs>() {
        return Some(source);
    }
    error.downcast_ref::<Error>().or_else(|| error.source().and_then(rpc))
}

fn project(config: &Config) -> Result<String, RequestError> {
    let of_subscription = || config.subscription_name().ok()?.split('/').nth(1).map(str::to_owned);
    let given = Some(config.project.trim()).filter(|project| !project.is_empty()).map(str::to_owned);
    given
        .or_else(of_subscription)
        .ok_or_else(|| RequestError::Unclear("pubsub.project is missing: set it, or give the topic's full name".into()))
}

/// A new topic is called like its subscription.
fn default_topic(config: &Config) -> Result<String, RequestError> {
    let subscription = config.subscription_name()?;
    Ok(subscription.replace("/subscriptions/", "/topics/"))
}

async fn topic_of(clients: &Clients, config: &Config) -> Result<String, RequestError> {
    let subscription = config.subscription_name()?;
    let admin = clients.admin().await?;
    let asked = answer(admin.get_subscription().set_subscription(&subscription).send()).await;
    let found = asked.map_err(|failure| missing(failure, "subscription", &subscription))?;
    Ok(found.topic)
}

async fn must_exist(clients: &Clients, name: &str) -> Result<(), RequestError> {
    match answer(clients.topics().await?.get_topic().set_topic(name).send()).await {
        // Those who may only publish may not look.
        Ok(_) | Err(Failure { reason: Reason::PermissionDenied, .. }) => Ok(()),
        Err(failure) => Err(missing(failure, "topic", name)),
    }
}

async fn make(clients: &Clients, config: &Config, topic: &str) -> Result<(), RequestError> {
    let subscription = config.subscription_name()?;
    let topics: TopicAdmin = clients.topics().await?;
    existing_is_fine(answer(topics.create_topic().set_name(topic).send()).await)?;
    let admin = clients.admin().await?;
    let creation = admin.create_subscription().set_name(&subscription).set_topic(topic);
    existing_is_fine(answer(creation.send()).await)
}

fn existing_is_fine<T>(answer: Result<T, Failure>) -> Result<(), RequestError> {
    match answer {
        Ok(_) | Err(Failure { reason: Reason::AlreadyExists, .. }) => Ok(()),
        Err(failure) => Err(failure.into()),
    }
}

fn missing(failure: Failure, what: &str, name: &str) -> RequestError {
    match failure.reason {
        Reason::NotFound => RequestError::NotFound(format!("{what} {name} does not exist")),
        _ => failure.into(),
    }
}

async fn answer<T>(request: impl Future<Output = Result<T, Error>>) -> Result<T, Failure> {
    match time::timeout(TIMEOUT, request).await {
        Ok(answer) => answer.map_err(|error| Failure::from(&error)),
        Err(_) => Err(Failure::new(Reason::Timeout, "no answer in time")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_may_not_publish_is_told_the_role_of_a_publisher() {
        let advice = |reason| match RequestError::from(Failure::new(reason, "no")).of_publisher() {
            RequestError::Refused { advice, .. } => Some(advice),
            _ => None,
        };

        assert_eq!(advice(Reason::PermissionDenied), Some("grant roles/pubsub.publisher on the topic"));
        assert_eq!(advice(Reason::ResourceExhausted), Some(""));
        assert_eq!(advice(Reason::Unreachable), None);
    }
}
