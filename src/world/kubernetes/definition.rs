//! Whether the definition of a custom resource is installed. Kinds without a definition are not watched, until a new definition
//! appears.

use std::pin::pin;

use futures_util::StreamExt;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Api;
use kube::runtime::watcher::{Config, Event, watcher};
use tokio::sync::watch::Sender;

use super::api_error::watch_reason;
use super::intake::IntakeClient;
use super::watch::Attempts;
use crate::world::metadata_only::{MetadataOnly, resource_of};

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) enum Definition {
    /// Not known.
    #[default]
    Unknown,
    /// Not installed, so there are no objects of the kind.
    Absent,
    /// Installed, but perhaps not served yet.
    Installed {
        /// Distinguishes the definition from an earlier one of the same name.
        uid: String,
    },
}

/// The state of one watch of one definition.
#[derive(Debug, Default)]
struct ListProgress {
    /// The content of an incomplete list.
    listed: Option<Definition>,
}

impl ListProgress {
    /// The state after an event; `None` if the event changes nothing.
    fn after(&mut self, event: Event<MetadataOnly>) -> Option<Definition> {
        match event {
            Event::Init => {
                self.listed = Some(Definition::Absent);
                None
            }
            Event::InitApply(object) => {
                self.listed = Some(installed(&object));
                None
            }
            Event::InitDone => self.listed.take(),
            Event::Apply(object) => Some(installed(&object)),
            Event::Delete(_) => Some(Definition::Absent),
        }
    }
}

fn installed(object: &MetadataOnly) -> Definition {
    Definition::Installed { uid: object.metadata.uid.clone().unwrap_or_default() }
}

/// Resets the state when the watch ends, for any reason.
struct AbsenceGuard<'d>(&'d Sender<Definition>);

impl Drop for AbsenceGuard<'_> {
    fn drop(&mut self) {
        // The watches of an installed definition fail if it is removed. A missing definition may be installed unnoticed.
        self.0.send_if_modified(|known| {
            let was_absent = *known == Definition::Absent;
            if was_absent {
                *known = Definition::Unknown;
            }
            was_absent
        });
    }
}

/// Follows the definition with a name, forever, metadata only. Receivers are notified of every change, even if the definition stays
/// installed, because a version may be served only now.
pub(super) async fn follow(client: IntakeClient, name: &'static str, known: &Sender<Definition>) {
    let api: Api<MetadataOnly> = Api::all_with(client.kube().clone(), &resource_of::<CustomResourceDefinition>());
    let only = Config::default().fields(&format!("metadata.name={name}"));
    let mut attempts = Attempts::default();
    loop {
        attempts.start();
        let guard = AbsenceGuard(known);
        let mut progress = ListProgress::default();
        let mut events = pin!(watcher(api.clone(), only.clone()));
        let failure = loop {
            match events.next().await {
                Some(Ok(event)) => {
                    if let Some(now) = progress.after(event) {
                        known.send_replace(now);
                    }
                }
                Some(Err(error)) => break Some(error),
                None => break None,
            }
        };
        drop(guard);
        if let Some(error) = failure
            && attempts.is_news(&error)
        {
            let error = watch_reason(&error);
            tracing::warn!(
                definition = name,
                error,
                "a watch failed; it is not known for now whether this definition is installed"
            );
        }
        attempts.pause().await;
    }
}

#[cfg(test)]
mod tests {
    use kube::core::ObjectMeta;
    use tokio::sync::watch;

    use super::*;

    fn definition(uid: &str) -> MetadataOnly {
        let metadata = ObjectMeta { uid: Some(uid.to_owned()), ..ObjectMeta::default() };
        MetadataOnly { types: None, metadata, _phantom: std::marker::PhantomData }
    }

    fn uid(uid: &str) -> Definition {
        Definition::Installed { uid: uid.to_owned() }
    }

    #[test]
    fn only_a_complete_list_shows_that_a_definition_is_absent() {
        use Event::{Apply, Delete, Init, InitApply, InitDone};
        let mut progress = ListProgress::default();
        let mut after = |event| progress.after(event);
        assert_eq!(after(Init), None);
        assert_eq!(after(InitDone), Some(Definition::Absent));
        assert_eq!(after(Apply(definition("a"))), Some(uid("a")));
        assert_eq!(after(Apply(definition("a"))), Some(uid("a")), "notified again: it may be served only now");
        assert_eq!(after(Delete(definition("a"))), Some(Definition::Absent));
        assert_eq!(after(Apply(definition("b"))), Some(uid("b")));
        // A list after an interruption: the definition was deleted and installed again.
        assert_eq!((after(Init), after(InitApply(definition("c")))), (None, None));
        assert_eq!(after(InitDone), Some(uid("c")));
    }

    #[test]
    fn the_end_of_a_watch_makes_an_absent_definition_unknown() {
        for (known, left) in [
            (Definition::Absent, Definition::Unknown),
            (Definition::Unknown, Definition::Unknown),
            (uid("a"), uid("a")),
        ] {
            let (sender, receiver) = watch::channel(known);
            drop(AbsenceGuard(&sender));
            assert_eq!(*receiver.borrow(), left);
        }
    }
}
