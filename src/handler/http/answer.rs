//! What an answer means: the status line decides.

use std::time::{Duration, SystemTime};

use bytes::BytesMut;
use reqwest::{
    Response, StatusCode,
    header::{DATE, HeaderMap, HeaderName, RETRY_AFTER},
};
use tokio::time::timeout;

use crate::{
    handler::{
        Handled,
        body::{MAX_REPLY, handled},
    },
    outcome::Detail,
};

/// How long the body of a reply may take.
const REPLY_TIME: Duration = Duration::from_secs(5);

/// How long bellhop listens to what a handler that failed has to say.
const DETAIL_TIME: Duration = Duration::from_secs(1);

/// By this header a handler says more than its status.
const OUTCOME: HeaderName = HeaderName::from_static("bellhop-outcome");

/// What the head of an answer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Done,
    NotRun {
        after: Option<Duration>,
    },
    Failed,
    Permanent,
    TargetTrouble,
    /// No answer that this protocol knows.
    Malformed,
}

/// What `status` and `headers` say; `now` stands in for a missing `Date`.
pub(super) fn verdict(status: StatusCode, headers: &HeaderMap, now: SystemTime) -> Verdict {
    if status.is_success() {
        return Verdict::Done;
    }
    let after = matches!(status.as_u16(), 429 | 503).then(|| retry_after(headers, now)).flatten();
    let said = headers.get(OUTCOME).and_then(|value| value.to_str().ok()).map(str::trim);
    match (status.as_u16(), said) {
        (300..=599, Some(said)) if said.eq_ignore_ascii_case("not-run") => Verdict::NotRun { after },
        (300..=599, Some(said)) if said.eq_ignore_ascii_case("permanent") => Verdict::Permanent,
        (409 | 425 | 429, _) => Verdict::NotRun { after },
        (503, _) if after.is_some() => Verdict::NotRun { after },
        (400 | 410 | 413 | 415 | 422 | 501, _) => Verdict::Permanent,
        (300..=399 | 401 | 403 | 404 | 405 | 407 | 421, _) => Verdict::TargetTrouble,
        (400..=599, _) => Verdict::Failed,
        _ => Verdict::Malformed,
    }
}

/// `Retry-After` in seconds, or as a date, which is read against the answer's own clock.
fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Duration::from_secs(text.parse().unwrap_or(u64::from(u32::MAX))));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    let date = headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    Some(until.duration_since(date.unwrap_or(now)).unwrap_or_default())
}

/// The reply in the body of an answer that said "done"; `left` is what remains of the attempt's time.
pub(super) async fn reply(mut answer: Response, left: Duration) -> Handled {
    let mut body = BytesMut::new();
    let ended = read(&mut answer, &mut body, MAX_REPLY + 1, left.min(REPLY_TIME)).await;
    handled(body.freeze(), ended)
}

/// The beginning of what a handler that did not succeed says about it.
pub(super) async fn detail(mut answer: Response, left: Duration) -> Detail {
    let mut body = BytesMut::new();
    read(&mut answer, &mut body, Detail::MAX, left.min(DETAIL_TIME)).await;
    Detail::new(&body)
}

/// Reads until `enough`; false when the body was cut or late.
async fn read(answer: &mut Response, body: &mut BytesMut, enough: usize, limit: Duration) -> bool {
    let chunks = async {
        while body.len() < enough {
            match answer.chunk().await {
                Ok(Some(chunk)) => body.extend_from_slice(&chunk),
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        true
    };
    timeout(limit, chunks).await.unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(status: u16, headers: &[(HeaderName, &str)]) -> Verdict {
        let headers = headers.iter().map(|(name, value)| (name.clone(), value.parse().unwrap())).collect();
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        verdict(StatusCode::from_u16(status).unwrap(), &headers, now)
    }

    fn wait(seconds: u64) -> Verdict {
        Verdict::NotRun { after: Some(Duration::from_secs(seconds)) }
    }

    #[test]
    fn every_status_has_its_row() {
        for status in 100..1_000 {
            let expected = match status {
                200..=299 => Verdict::Done,
                409 | 425 | 429 => Verdict::NotRun { after: None },
                400 | 410 | 413 | 415 | 422 | 501 => Verdict::Permanent,
                300..=399 | 401 | 403 | 404 | 405 | 407 | 421 => Verdict::TargetTrouble,
                400..=599 => Verdict::Failed,
                _ => Verdict::Malformed,
            };
            assert_eq!(of(status, &[]), expected, "{status}");
        }
    }

    #[test]
    fn the_handlers_own_word_goes_before_its_status_but_not_before_success() {
        for status in [302, 400, 401, 404, 408, 409, 422, 500, 503, 599] {
            assert_eq!(of(status, &[(OUTCOME, "not-run")]), Verdict::NotRun { after: None }, "{status}");
            assert_eq!(of(status, &[(OUTCOME, " Permanent ")]), Verdict::Permanent, "{status}");
        }
        assert_eq!(of(200, &[(OUTCOME, "not-run")]), Verdict::Done);
        assert_eq!(of(500, &[(OUTCOME, "whatever")]), Verdict::Failed);
    }

    #[test]
    fn a_503_is_a_promise_only_with_a_retry_after_that_can_be_read() {
        assert_eq!(of(503, &[(RETRY_AFTER, "7")]), wait(7));
        assert_eq!(of(503, &[(RETRY_AFTER, "soon")]), Verdict::Failed);
        assert_eq!(of(503, &[(RETRY_AFTER, "-1")]), Verdict::Failed);
        assert_eq!(of(503, &[(RETRY_AFTER, "")]), Verdict::Failed);
    }

    #[test]
    fn retry_after_counts_for_429_and_503_only() {
        assert_eq!(of(429, &[(RETRY_AFTER, "99999999999999999999")]), wait(u64::from(u32::MAX)));
        assert_eq!(of(409, &[(RETRY_AFTER, "7")]), Verdict::NotRun { after: None });
        assert_eq!(of(500, &[(RETRY_AFTER, "7")]), Verdict::Failed);
    }

    #[test]
    fn a_date_is_read_against_the_answers_own_clock() {
        let until = (RETRY_AFTER, "Sun, 06 Nov 1994 08:49:47 GMT");

        assert_eq!(of(429, std::slice::from_ref(&until)), wait(10));
        assert_eq!(of(429, &[until.clone(), (DATE, "Sun, 06 Nov 1994 08:49:17 GMT")]), wait(30));
        assert_eq!(of(429, &[until.clone(), (DATE, "Sun, 06 Nov 1994 09:49:17 GMT")]), wait(0));
        assert_eq!(of(429, &[until, (DATE, "junk")]), wait(10));
    }
}
