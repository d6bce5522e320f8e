//! What is kept of a stream that may be endless.

use tokio::io::{AsyncRead, AsyncReadExt};

/// Which end of a stream is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    First,
    Last,
}

/// Reads a stream to its end and keeps a bounded part of it.
#[derive(Debug)]
pub(super) struct Capture {
    kept: Vec<u8>,
    limit: usize,
    end: End,
}

impl Capture {
    /// Keeps the first `limit` bytes.
    pub(super) const fn first(limit: usize) -> Self {
        Self { kept: Vec::new(), limit, end: End::First }
    }

    /// Keeps the last `limit` bytes.
    pub(super) const fn last(limit: usize) -> Self {
        Self { kept: Vec::new(), limit, end: End::Last }
    }

    /// Reads until the stream ends or breaks. What was read stays when the call is dropped.
    pub(super) async fn read(&mut self, mut stream: impl AsyncRead + Unpin) {
        let mut chunk = vec![0; 16 * 1_024];
        while let Ok(count @ 1..) = stream.read(&mut chunk).await {
            self.take(&chunk[..count]);
        }
    }

    fn take(&mut self, bytes: &[u8]) {
        match self.end {
            End::First => {
                let room = self.limit.saturating_sub(self.kept.len());
                self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            }
            End::Last => {
                self.kept.extend_from_slice(bytes);
                let surplus = self.kept.len().saturating_sub(self.limit);
                self.kept.drain(..surplus);
            }
        }
    }

    /// What was kept. A last part does not begin in the middle of a character.
    pub(super) fn into_bytes(mut self) -> Vec<u8> {
        if self.end == End::Last {
            let broken = self.kept.iter().take(3).take_while(|byte| **byte & 0b1100_0000 == 0b1000_0000).count();
            self.kept.drain(..broken);
        }
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn kept(mut capture: Capture, stream: &[u8]) -> Vec<u8> {
        capture.read(stream).await;
        capture.into_bytes()
    }

    #[tokio::test]
    async fn the_first_or_the_last_bytes_of_a_stream_are_kept() {
        let stream: Vec<u8> = (0..100_000_u32).flat_map(|n| n.to_string().into_bytes()).collect();

        assert_eq!(kept(Capture::first(10), &stream).await, stream[..10]);
        assert_eq!(kept(Capture::last(10), &stream).await, stream[stream.len() - 10..]);
        assert_eq!(kept(Capture::first(10), b"abc").await, b"abc");
        assert_eq!(kept(Capture::last(10), b"abc").await, b"abc");
        assert_eq!(kept(Capture::first(0), b"abc").await, b"");
    }

    #[tokio::test]
    async fn a_last_part_begins_with_a_whole_character() {
        assert_eq!(kept(Capture::last(4), "aé😀".as_bytes()).await, "😀".as_bytes());
        assert_eq!(kept(Capture::last(5), "aé😀".as_bytes()).await, "😀".as_bytes());
    }
}
