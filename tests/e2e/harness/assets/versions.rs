//! Which Kubernetes and which helm the e2e tests run on. Without the variables: the default Kubernetes, and the newest helm 3
//! and helm 4.

/// One patch release of each supported minor version, oldest first. A test compares the first and the last with
/// `src/supported.rs`.
pub(crate) const KUBERNETES: [&str; 8] =
    ["1.30.14", "1.31.14", "1.32.13", "1.33.13", "1.34.9", "1.35.6", DEFAULT_KUBERNETES, "1.37.2"];

/// The one that `tests/controlplane/go.mod` pins.
pub(crate) const DEFAULT_KUBERNETES: &str = "1.36.3";

/// The oldest and the newest supported release of helm 3 and of helm 4.
pub(crate) const HELM: [[&str; 2]; 2] = [["3.4.2", "3.22.0"], ["4.0.0", "4.3.1"]];

/// `INTERLOCK_KUBERNETES`: `oldest`, `newest`, a minor version (`1.33`) or a release (`1.33.5`).
const KUBERNETES_VARIABLE: &str = "INTERLOCK_KUBERNETES";

/// `INTERLOCK_HELM`: `oldest`, `newest`, or a release (`3.4.2`), or one of each major version (`3.4.2,4.0.0`).
const HELM_VARIABLE: &str = "INTERLOCK_HELM";

/// Releases without a leading `v`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Versions {
    pub(crate) kubernetes: String,
    pub(crate) helm3: String,
    pub(crate) helm4: String,
}

impl Versions {
    pub(crate) fn from_environment() -> Result<Self, String> {
        let value = |name| std::env::var(name).unwrap_or_default();
        Self::chosen(&value(KUBERNETES_VARIABLE), &value(HELM_VARIABLE))
    }

    /// The versions for the values of the two variables. An empty value stands for the default.
    pub(crate) fn chosen(kubernetes: &str, helm: &str) -> Result<Self, String> {
        let [helm3, helm4] = chosen_helms(helm)?;
        Ok(Self { kubernetes: chosen_kubernetes(kubernetes)?, helm3, helm4 })
    }
}

fn chosen_kubernetes(value: &str) -> Result<String, String> {
    let [oldest, .., newest] = KUBERNETES;
    let listed = |minor: &str| KUBERNETES.into_iter().find(|it| it.rsplit_once('.').is_some_and(|(it, _)| it == minor));
    match value {
        "" => Ok(DEFAULT_KUBERNETES.to_owned()),
        "oldest" => Ok(oldest.to_owned()),
        "newest" => Ok(newest.to_owned()),
        release if is_release(release) && release.starts_with("1.") => Ok(release.to_owned()),
        minor => listed(minor).map(str::to_owned).ok_or_else(|| {
            format!(
                "{KUBERNETES_VARIABLE}={minor}: expected oldest, newest, a release such as {DEFAULT_KUBERNETES}, or the minor \
                 version of one of {}",
                KUBERNETES.join(", ")
            )
        }),
    }
}

fn chosen_helms(value: &str) -> Result<[String; 2], String> {
    let at = |index: usize| HELM.map(|releases| releases[index].to_owned());
    let mut chosen = at(1);
    match value {
        "" | "newest" => {}
        "oldest" => chosen = at(0),
        list => {
            for release in list.split(',').map(str::trim) {
                let place = match release.split_once('.') {
                    Some(("3", _)) => 0,
                    Some(("4", _)) => 1,
                    _ => return Err(unknown_helm(list)),
                };
                if !is_release(release) {
                    return Err(unknown_helm(list));
                }
                release.clone_into(&mut chosen[place]);
            }
        }
    }
    Ok(chosen)
}

fn unknown_helm(value: &str) -> String {
    format!("{HELM_VARIABLE}={value}: expected oldest, newest, or releases such as 3.22.0 or 3.22.0,4.3.1")
}

/// Whether this is a version with three numbers.
fn is_release(text: &str) -> bool {
    text.split('.').count() == 3 && text.split('.').all(|part| part.parse::<u32>().is_ok())
}
