//! Where Pub/Sub is. The client library spins at full speed on an address that it can not use, so none gets to it.

use reqwest::Url;

const GOOGLE: &str = "https://pubsub.googleapis.com";

/// A checked address, or Google's own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint(Option<String>);

/// Why an address can not be used.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("is \"{given}\": {why}; give https://host[:port], or host:port of an emulator")]
pub struct EndpointError {
    given: String,
    why: &'static str,
}

impl Endpoint {
    /// Checks what was given; `host:port` gets the `http://` that it lacks, nothing at all means Google.
    ///
    /// # Errors
    /// When no connection can be opened to it.
    pub fn parse(given: &str) -> Result<Self, EndpointError> {
        let given = given.trim();
        if given.is_empty() {
            return Ok(Self(None));
        }
        let refused = |why| EndpointError { given: given.to_owned(), why };
        let has_scheme = given.contains("://");
        let text = if has_scheme { given.to_owned() } else { format!("http://{given}") };
        let url = Url::parse(&text).map_err(|_| refused("that is no address"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(refused("the scheme is unknown"));
        }
        if url.host_str().is_none_or(str::is_empty) {
            return Err(refused("the host is missing"));
        }
        if !has_scheme && url.port().is_none() {
            return Err(refused("without a scheme it needs a port"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(refused("user names and passwords are not supported"));
        }
        if url.path() != "/" || url.query().is_some() || url.fragment().is_some() {
            return Err(refused("there is something after host and port"));
        }
        Ok(Self(Some(url.as_str().trim_end_matches('/').to_owned())))
    }

    /// The address with its scheme; empty for Google's own.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_deref().unwrap_or_default()
    }

    /// The address to connect to.
    pub(super) fn address(&self) -> &str {
        self.0.as_deref().unwrap_or(GOOGLE)
    }

    /// The name the server is to be called by: its own for regional endpoints and other servers; Google's for the
    /// private ways to Google (`private.googleapis.com` and the like). The client library does the same.
    pub(super) fn origin(&self) -> &str {
        let host =
            self.as_str().strip_prefix("https://").map(|host| host.split_once(':').map_or(host, |(host, _)| host));
        let Some(prefix) = host.and_then(|host| host.strip_suffix(".googleapis.com")) else { return self.address() };
        let regional = prefix.starts_with("pubsub.") && prefix.ends_with(".rep");
        let locational = prefix.strip_suffix("-pubsub").is_some_and(|location| !location.is_empty());
        if regional || locational { self.address() } else { GOOGLE }
    }

    /// True when the connection is not encrypted: then it is an emulator, and no token may travel over it.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        self.as_str().starts_with("http:")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_addresses_are_kept_and_a_missing_scheme_is_added() {
        for (given, endpoint, plain) in [
            ("", "", false),
            ("https://europe-west3-pubsub.googleapis.com", "https://europe-west3-pubsub.googleapis.com", false),
            ("https://pubsub.example.com:8443/", "https://pubsub.example.com:8443", false),
            ("localhost:8085", "http://localhost:8085", true),
            ("127.0.0.1:8085", "http://127.0.0.1:8085", true),
            ("[::1]:8085", "http://[::1]:8085", true),
            (" http://emulator:8085 ", "http://emulator:8085", true),
        ] {
            let parsed = Endpoint::parse(given).unwrap();

            assert_eq!((parsed.as_str(), parsed.is_plain()), (endpoint, plain), "{given}");
        }
    }

    #[test]
    fn private_ways_to_google_are_called_by_googles_name() {
        for (given, origin) in [
            ("", GOOGLE),
            ("https://private.googleapis.com", GOOGLE),
            ("https://pubsub-mine.p.googleapis.com", GOOGLE),
            ("https://europe-west3-pubsub.googleapis.com", "https://europe-west3-pubsub.googleapis.com"),
            ("https://pubsub.europe-west3.rep.googleapis.com", "https://pubsub.europe-west3.rep.googleapis.com"),
            ("https://pubsub.example.com:8443", "https://pubsub.example.com:8443"),
            ("localhost:8085", "http://localhost:8085"),
        ] {
            assert_eq!(Endpoint::parse(given).unwrap().origin(), origin, "{given}");
        }
    }

    #[test]
    fn unusable_addresses_are_refused() {
        for given in [
            "localhost",
            "ftp://host:1",
            "grpc://host:1",
            "http://",
            "https://:443",
            "host:99999",
            "https://user:pw@host",
            "https://host/v1",
            "https://host?x=1",
            "host name:80",
        ] {
            assert!(Endpoint::parse(given).is_err(), "{given}");
        }
    }
}
