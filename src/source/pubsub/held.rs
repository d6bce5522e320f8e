//! Which messages this process holds unanswered.
//!
//! The client extends their leases by itself and tells nobody how that went. What can be seen from outside is a message
//! that comes again although it is held: its lease has ended at the server, and another process may get it too.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Copies held, by the message's id.
#[derive(Debug, Default)]
pub(super) struct HeldMessages {
    copies: Mutex<HashMap<Arc<str>, usize>>,
}

impl HeldMessages {
    /// Holds a copy until the guard is dropped; says whether another copy is held already.
    pub(super) fn hold(self: &Arc<Self>, message_id: &str) -> (Held, bool) {
        let message_id = Arc::<str>::from(message_id);
        let mut copies = self.lock();
        let held = copies.entry(Arc::clone(&message_id)).or_default();
        *held += 1;
        (Held { message_id, messages: Arc::clone(self) }, *held > 1)
    }

    fn release(&self, message_id: &str) {
        let mut copies = self.lock();
        if let Some(held) = copies.get_mut(message_id) {
            *held -= 1;
            if *held == 0 {
                copies.remove(message_id);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, usize>> {
        self.copies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// One copy of a message.
#[derive(Debug)]
pub(super) struct Held {
    message_id: Arc<str>,
    messages: Arc<HeldMessages>,
}

impl Held {
    /// The id of the message.
    pub(super) const fn message_id(&self) -> &Arc<str> {
        &self.message_id
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.messages.release(&self.message_id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_known_for_as_long_as_one_of_its_copies_is_held() {
        let messages = Arc::new(HeldMessages::default());

        let (first, again) = messages.hold("1");
        assert!(!again);
        assert!(!messages.hold("2").1);
        let (second, again) = messages.hold("1");
        assert!(again);

        drop(first);
        assert!(messages.hold("1").1);
        drop(second);
        assert!(!messages.hold("1").1);
        assert!(messages.lock().is_empty());
    }
}
