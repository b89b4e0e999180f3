use super::*;

/// A cluster of which nothing is known but the time: 2026-11-21T10:00:00Z.
pub(super) fn cluster() -> Cluster {
    let now: Timestamp = "2026-11-21T10:00:00Z".parse().unwrap();
    let unknown = || Seen::Unknown("not asked".to_owned());
    Cluster {
        namespace: "guard".to_owned(),
        validating: unknown(),
        mutating: unknown(),
        deployment: unknown(),
        pods: unknown(),
        budgets: unknown(),
        lease: unknown(),
        definition: unknown(),
        policies: Err("not asked".to_owned()),
        namespaces: unknown(),
        nodes: unknown(),
        records: Err("not asked".to_owned()),
        version: unknown(),
        roles: unknown(),
        bindings: unknown(),
        local_roles: unknown(),
        local_bindings: unknown(),
        clocks: (now, now),
    }
}
