//! The namespaces that Interlock may read: all, or some named ones. It then needs rights only in these.

use std::future::ready;
use std::sync::Arc;

use futures_util::future::Either;
use futures_util::{Stream, StreamExt, stream};
use kube::api::{Api, ApiResource};
use kube::core::{DynamicResourceScope, NamespaceResourceScope};
use kube::runtime::watcher::{self, Event};
use kube::{Client, Resource};

/// The namespaces that Interlock may read. State in other namespaces is unavailable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Reach(Option<Arc<[String]>>);

impl Reach {
    /// The named namespaces, or all if none is named.
    pub fn only(namespaces: impl IntoIterator<Item = String>) -> Self {
        let mut namespaces: Vec<_> = namespaces.into_iter().collect();
        namespaces.sort_unstable();
        namespaces.dedup();
        Self((!namespaces.is_empty()).then(|| namespaces.into()))
    }

    /// Whether all namespaces are included.
    #[must_use]
    pub fn is_everywhere(&self) -> bool {
        self.0.is_none()
    }

    /// Whether a namespace is included.
    #[must_use]
    pub fn includes(&self, namespace: &str) -> bool {
        self.0.as_ref().is_none_or(|named| named.iter().any(|it| it == namespace))
    }

    /// The collections of a built-in kind to request: one for each namespace, or one for all.
    pub(crate) fn apis<K>(&self, client: &Client) -> Vec<Api<K>>
    where
        K: Resource<DynamicType = (), Scope = NamespaceResourceScope>,
    {
        let apis = self.places().map(|namespace| match namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        });
        apis.collect()
    }

    /// The collections of a custom kind to request: one for each namespace, or one for all.
    pub(crate) fn apis_with<K>(&self, client: &Client, resource: &ApiResource) -> Vec<Api<K>>
    where
        K: Resource<DynamicType = ApiResource, Scope = DynamicResourceScope>,
    {
        let apis = self.places().map(|namespace| match namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, resource),
            None => Api::all_with(client.clone(), resource),
        });
        apis.collect()
    }

    /// The namespaces to request, one by one. `None` stands for all at once.
    pub fn places(&self) -> impl Iterator<Item = Option<&str>> {
        let named = self.0.as_deref();
        let everywhere = named.is_none().then_some(None);
        everywhere.into_iter().chain(named.into_iter().flatten().map(|namespace| Some(namespace.as_str())))
    }
}

/// Merges the watches of several namespaces. The merged list is complete when each watch has listed. If one of several watches
/// lists again, the merged stream ends, because the list of one namespace must not count as the list of all.
pub(crate) fn merge_watches<K, W>(mut watches: Vec<W>) -> impl Stream<Item = watcher::Result<Event<K>>>
where
    W: Stream<Item = watcher::Result<Event<K>>>,
{
    if watches.len() == 1 {
        return Either::Left(watches.remove(0));
    }
    let all = watches.len();
    let watches = stream::select_all(watches.into_iter().map(Box::pin));
    let merged = watches.scan((0, 0), move |(begun, listed), event| {
        let event = match event {
            Ok(Event::Init) => {
                *begun += 1;
                if *begun > all {
                    return ready(None);
                }
                (*begun == 1).then_some(Ok(Event::Init))
            }
            Ok(Event::InitDone) => {
                *listed += 1;
                (*listed == all).then_some(Ok(Event::InitDone))
            }
            event => Some(event),
        };
        ready(Some(event))
    });
    Either::Right(merged.filter_map(ready))
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// The merged events of these watches. Each watch sends all its events before the next one starts.
    fn said(watches: &[&[&str]]) -> Vec<String> {
        let watches = watches.iter().map(|watch| {
            stream::iter(watch.iter().map(|word| {
                Ok(match *word {
                    "init" => Event::Init,
                    "done" => Event::InitDone,
                    name => name
                        .strip_prefix('+')
                        .map_or_else(|| Event::InitApply(name.to_owned()), |name| Event::Apply(name.to_owned())),
                })
            }))
        });
        let events = merge_watches(watches.collect()).map(|event| match event.unwrap() {
            Event::Init => "init".to_owned(),
            Event::InitDone => "done".to_owned(),
            Event::InitApply(name) => name,
            Event::Apply(name) => format!("+{name}"),
            Event::Delete(name) => format!("-{name}"),
        });
        events.collect().now_or_never().unwrap()
    }

    #[test]
    fn a_list_is_complete_when_every_namespace_has_listed() {
        let mut events = said(&[&["init", "a", "done"], &["init", "b", "done"]]);
        assert_eq!((events.remove(0), events.pop()), ("init".to_owned(), Some("done".to_owned())));
        events.sort();
        assert_eq!(events, ["a", "b"]);
        assert_eq!(said(&[&["init", "a", "done"], &["init", "b"]]).iter().filter(|event| *event == "done").count(), 0);
    }

    #[test]
    fn a_new_list_ends_merged_watches_but_not_a_single_one() {
        let again = said(&[&["init", "a", "done", "init", "a", "done", "+late"], &["init", "b", "done"]]);
        assert!(!again.contains(&"+late".to_owned()), "{again:?}");
        let alone = ["init", "a", "done", "init", "b", "done", "+c"];
        assert_eq!(said(&[&alone]), alone);
    }

    #[test]
    fn named_namespaces_are_requested_one_by_one() {
        let everywhere = Reach::only([]);
        assert_eq!(everywhere, Reach::default());
        assert!(everywhere.is_everywhere() && everywhere.includes("shop"));
        assert_eq!(everywhere.places().collect::<Vec<_>>(), [None]);
        let two = Reach::only(["shop", "bar", "shop"].map(str::to_owned));
        assert_eq!(two.places().collect::<Vec<_>>(), [Some("bar"), Some("shop")]);
        assert!(!two.is_everywhere() && two.includes("bar") && !two.includes("kube-system"));
    }
}
