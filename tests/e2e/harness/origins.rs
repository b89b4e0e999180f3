//! Releases as each version of helm leaves them. The versions differ in how they write objects and managedFields.

use crate::harness::chart::Chart;
use crate::harness::clients::{Driver, HelmVersion};
use crate::harness::namespace::Namespace;
use crate::harness::plane::Plane;

/// Who installed a release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// helm 3, by client-side patches.
    Helm3,
    /// helm 4, by server-side apply.
    Helm4,
    /// helm 3 first, then helm 4 by server-side apply.
    TakenOver,
}

impl Origin {
    pub(crate) const ALL: [Self; 3] = [Self::Helm3, Self::Helm4, Self::TakenOver];

    /// Alice's release `demo` of the plain chart in a namespace of its own, and its revision.
    #[track_caller]
    pub(crate) fn release(self, test: &str) -> (Namespace<'static>, u32) {
        let namespace = Namespace::new(Plane::shared(), test);
        let chart = Chart::new("demo");
        let helm = |version| namespace.helm(version, Driver::Secret, "alice");
        let first = if self == Self::Helm4 { HelmVersion::V4 } else { HelmVersion::V3 };
        helm(first).ok(&["install", "demo", chart.path()]);
        if self == Self::TakenOver {
            helm(HelmVersion::V4).ok(&["upgrade", "demo", chart.path(), "--server-side=true"]);
        }
        (namespace, if self == Self::TakenOver { 2 } else { 1 })
    }

    /// Runs a test for every origin, side by side.
    pub(crate) fn everywhere(test: impl Fn(Self) + Sync) {
        std::thread::scope(|scope| {
            for origin in Self::ALL {
                let test = &test;
                scope.spawn(move || test(origin));
            }
        });
    }
}
