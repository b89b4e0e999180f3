//! Small charts in temporary directories.

use std::fs;
use std::path::Path;

use serde_json::Value;
use tempfile::TempDir;

/// A template: a ConfigMap that helm does not delete.
pub(crate) const KEPT: &str = r#"apiVersion: v1
kind: ConfigMap
metadata:
  name: kept
  annotations:
    helm.sh/resource-policy: keep
data:
  note: {{ .Values.note | quote }}
"#;

/// A template: a ConfigMap that exists only with `extra=true`.
pub(crate) const EXTRA: &str = r#"{{- if .Values.extra }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: extra
data:
  note: {{ .Values.note | quote }}
{{- end }}
"#;

/// When a hook runs, as in `helm.sh/hook`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum When {
    PreInstall,
    PostInstall,
    PreUpgrade,
    PostUpgrade,
    PreRollback,
    PostRollback,
    PreDelete,
    PostDelete,
    Test,
}

impl When {
    fn name(self) -> &'static str {
        match self {
            Self::PreInstall => "pre-install",
            Self::PostInstall => "post-install",
            Self::PreUpgrade => "pre-upgrade",
            Self::PostUpgrade => "post-upgrade",
            Self::PreRollback => "pre-rollback",
            Self::PostRollback => "post-rollback",
            Self::PreDelete => "pre-delete",
            Self::PostDelete => "post-delete",
            Self::Test => "test",
        }
    }
}

/// The kind of a hook. helm waits until a Job or Pod completes, but not for a ConfigMap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HookKind {
    ConfigMap,
    Job,
    Pod,
}

/// A chart with a ConfigMap, a Service and a Deployment, named after the release with dots as dashes, and these values:
///
/// - `note`: the ConfigMap's content; `image`, `replicas`: the Deployment's;
/// - `breakRender=true`: rendering fails, so no record is written;
/// - `breakApply=true`: the API server refuses the last object, when the others are there;
/// - `failHooks=true`: hooks that are Jobs or Pods fail.
pub(crate) struct Chart {
    dir: TempDir,
    name: String,
    hooks: Vec<(When, HookKind)>,
}

impl Chart {
    /// Writes version 1.0.0.
    #[track_caller]
    pub(crate) fn new(name: &str) -> Self {
        let dir = tempfile::Builder::new().prefix("chart-").tempdir().expect("a temporary directory");
        let chart = Self { dir, name: name.to_owned(), hooks: Vec::new() };
        chart.write("Chart.yaml", &chart_yaml(name, "1.0.0"));
        chart.write("values.yaml", VALUES);
        for (file, content) in TEMPLATES {
            chart.write(&format!("templates/{file}"), content);
        }
        chart
    }

    /// Adds a hook, to be kept until the next time it runs.
    #[must_use]
    #[track_caller]
    pub(crate) fn hook(mut self, when: When, kind: HookKind) -> Self {
        let (event, number) = (when.name(), self.hooks.len());
        let (api, kind_name, body) = match kind {
            HookKind::ConfigMap => ("v1", "ConfigMap", "data: {ran: \"{{ .Release.Revision }}\"}\n".to_owned()),
            HookKind::Pod => ("v1", "Pod", format!("spec:\n{}", pod_spec("  "))),
            HookKind::Job => (
                "batch/v1",
                "Job",
                format!(
                    "spec:\n  backoffLimit: 0\n  template:\n    metadata:\n      annotations: {EXIT_CODE}\n    spec:\n{}",
                    pod_spec("      ")
                ),
            ),
        };
        let content = format!(
            "apiVersion: {api}\nkind: {kind_name}\nmetadata:\n  name: {NAME}-{event}-{number}\n  annotations:\n    \
             helm.sh/hook: {event}\n    helm.sh/hook-delete-policy: before-hook-creation\n    \
             controlplane/exit-code: {{{{ ternary 1 0 .Values.failHooks | quote }}}}\n{body}"
        );
        self.write(&format!("templates/hook-{number}.yaml"), &content);
        self.hooks.push((when, kind));
        self
    }

    /// Adds a template.
    #[must_use]
    #[track_caller]
    pub(crate) fn template(self, name: &str, content: &str) -> Self {
        self.write(&format!("templates/{name}.yaml"), content);
        self
    }

    /// Adds a CustomResourceDefinition to the directory `crds/`.
    #[must_use]
    #[track_caller]
    pub(crate) fn definition(self, definition: &Value) -> Self {
        self.write("crds/definition.yaml", &definition.to_string());
        self
    }

    /// Gives the chart another version, in place.
    #[track_caller]
    pub(crate) fn set_version(&self, version: &str) {
        self.write("Chart.yaml", &chart_yaml(&self.name, version));
    }

    /// Where it is, for helm's command line.
    pub(crate) fn path(&self) -> &str {
        self.dir.path().to_str().expect("temporary directories have plain names")
    }

    #[track_caller]
    fn write(&self, path: &str, content: &str) {
        let file = self.dir.path().join(path);
        fs::create_dir_all(file.parent().unwrap_or(Path::new("/"))).expect("a temporary directory is writable");
        fs::write(file, content).expect("a temporary directory is writable");
    }
}

fn chart_yaml(name: &str, version: &str) -> String {
    format!("apiVersion: v2\nname: {name}\nversion: {version}\nappVersion: \"1\"\n")
}

fn pod_spec(indent: &str) -> String {
    format!(
        "{indent}restartPolicy: Never\n{indent}containers:\n{indent}  - name: hook\n{indent}    image: {{{{ .Values.image }}}}\n"
    )
}

const NAME: &str = "{{ .Release.Name | replace \".\" \"-\" }}";
const EXIT_CODE: &str = "{controlplane/exit-code: {{ ternary 1 0 .Values.failHooks | quote }}}";

const VALUES: &str = "note: one
replicas: 1
# No kubelet pulls it.
image: registry.invalid/app:1
breakRender: false
breakApply: false
failHooks: false
";

const TEMPLATES: [(&str, &str); 4] = [
    (
        "configmap.yaml",
        r#"{{- if .Values.breakRender }}{{ fail "asked to break" }}{{ end }}
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name | replace "." "-" }}
data:
  note: {{ .Values.note | quote }}
"#,
    ),
    (
        "service.yaml",
        r#"apiVersion: v1
kind: Service
metadata:
  name: {{ .Release.Name | replace "." "-" }}
spec:
  selector:
    app: {{ .Release.Name | quote }}
  ports:
    - name: http
      port: 80
"#,
    ),
    (
        "deployment.yaml",
        r#"apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name | replace "." "-" }}
  labels:
    tier: web
spec:
  replicas: {{ .Values.replicas }}
  selector:
    matchLabels:
      app: {{ .Release.Name | quote }}
  template:
    metadata:
      labels:
        app: {{ .Release.Name | quote }}
    spec:
      containers:
        - name: app
          image: {{ .Values.image }}
          env:
            - name: NOTE
              value: {{ .Values.note | quote }}
"#,
    ),
    (
        "refused.yaml",
        // Clients accept the object, but the API server rejects its selector. helm applies Deployments by name, so `zz`
        // is last.
        r#"{{- if .Values.breakApply }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: zz-refused-{{ .Release.Name | replace "." "-" }}
spec:
  selector:
    matchLabels:
      app: one
  template:
    metadata:
      labels:
        app: another
    spec:
      containers:
        - name: app
          image: {{ .Values.image }}
{{- end }}
"#,
    ),
];
