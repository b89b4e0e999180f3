//! Objects of a release edited by hand: every way is refused, and the refusal names the declared field.

use serde_json::{Value, json};

use crate::harness::acts::{Act, Target, Verdict, edit};
use crate::harness::decisions::decisions;
use crate::harness::eventually::eventually;
use crate::harness::namespace::Namespace;
use crate::harness::origins::Origin;
use crate::harness::process::Output;

use Verdict::{Edits, Passes, Says};

const IMAGE: &str = "spec.template.spec.containers[app].image";
const MANAGED_BY: &str = "metadata.labels[app.kubernetes.io/managed-by]";
const RELEASE_NAME: &str = "metadata.annotations[meta.helm.sh/release-name]";

/// None of these changes the object.
const EDITS: &[Act] = &[
    ("another image", &["set", "image", "deployment/demo", "app=bob:1"], Edits(IMAGE)),
    (
        "another image, under the name of helm",
        &["set", "image", "deployment/demo", "app=bob:1", "--field-manager=helm"],
        Edits(IMAGE),
    ),
    (
        "another value of a variable",
        &["set", "env", "deployment/demo", "NOTE=bob"],
        Edits("spec.template.spec.containers[app].env[NOTE].value"),
    ),
    (
        "a JSON patch",
        &[
            "patch",
            "deployment/demo",
            "--type=json",
            "-p",
            r#"[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":"bob:1"}]"#,
        ],
        Edits(IMAGE),
    ),
    (
        "a merge patch",
        &["patch", "deployment/demo", "--type=merge", "-p", r#"{"spec":{"replicas":5}}"#],
        Edits("spec.replicas"),
    ),
    (
        "a strategic patch",
        &[
            "patch",
            "deployment/demo",
            "-p",
            r#"{"spec":{"template":{"spec":{"containers":[{"name":"app","image":"bob:1"}]}}}}"#,
        ],
        Edits(IMAGE),
    ),
    (
        "two fields at once",
        &["patch", "deployment/demo", "-p", r#"{"metadata":{"labels":{"tier":"bob"}},"spec":{"replicas":5}}"#],
        Edits("metadata.labels.tier and spec.replicas"),
    ),
    ("a value", &["patch", "configmap/demo", "--type=merge", "-p", r#"{"data":{"note":"bob"}}"#], Edits("data.note")),
    (
        "a value taken away",
        &["patch", "configmap/demo", "--type=json", "-p", r#"[{"op":"remove","path":"/data/note"}]"#],
        Edits("data"),
    ),
    (
        "a selector",
        &["patch", "service/demo", "-p", r#"{"spec":{"selector":{"app":"bob"}}}"#],
        Edits("spec.selector.app"),
    ),
    ("a declared label", &["label", "deployment/demo", "--overwrite", "tier=bob"], Edits("metadata.labels.tier")),
    ("a declared label taken away", &["label", "deployment/demo", "tier-"], Edits("metadata.labels.tier")),
    ("the label of the manager", &["label", "deployment/demo", "app.kubernetes.io/managed-by-"], Edits(MANAGED_BY)),
    (
        "another manager",
        &["label", "deployment/demo", "--overwrite", "app.kubernetes.io/managed-by=bob"],
        Edits(MANAGED_BY),
    ),
    (
        "the annotations of the release",
        &["annotate", "deployment/demo", "meta.helm.sh/release-name-", "meta.helm.sh/release-namespace-"],
        Edits(
            "metadata.annotations[meta.helm.sh/release-name] and metadata.annotations[meta.helm.sh/release-namespace]",
        ),
    ),
    (
        "another release",
        &["annotate", "deployment/demo", "--overwrite", "meta.helm.sh/release-name=bobs"],
        Edits(RELEASE_NAME),
    ),
    (
        "the account of fields",
        &["patch", "deployment/demo", "--type=merge", "-p", r#"{"metadata":{"managedFields":[{}]}}"#],
        Says("metadata.managedFields shows who has written which field, and would no longer"),
    ),
    (
        "the account of fields, and a field with it",
        &[
            "patch",
            "configmap/demo",
            "--type=merge",
            "-p",
            r#"{"metadata":{"managedFields":[{}]},"data":{"note":"bob"}}"#,
        ],
        Says(
            "data.note is declared by the chart; metadata.managedFields shows who has written which field, and would no longer",
        ),
    ),
];

/// The allowed neighbours: fields that the chart does not declare.
const FREE: &[Act] = &[
    ("an undeclared label", &["label", "deployment/demo", "team=blue"], Passes),
    ("an undeclared annotation", &["annotate", "service/demo", "note=hello"], Passes),
    ("an undeclared key", &["patch", "configmap/demo", "--type=merge", "-p", r#"{"data":{"mine":"1"}}"#], Passes),
];

#[test]
fn a_declared_field_cannot_be_edited_by_hand_whichever_helm_wrote_it() {
    Origin::everywhere(|origin| {
        let (namespace, revision) = origin.release("edit");
        let target = Target::deployed(&namespace, "demo", revision);
        let kubectl = namespace.kubectl("bob");
        let before = contents(&namespace);
        target.expect_all(&kubectl, EDITS);
        target.expect(&edit(&kubectl, "deployment/demo", "registry.invalid/app:1", "bob:1"), Edits(IMAGE));
        target.expect(&replaced(&namespace, "configmap/demo", |object| object["data"]["note"] = "bob".into()), {
            Edits("data.note")
        });
        target.expect(
            &replaced(&namespace, "deployment/demo", |object| {
                object["spec"]["template"]["spec"]["containers"][0]["image"] = "bob:1".into();
            }),
            Edits(IMAGE),
        );
        let applied = json!({
            "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "demo"},
            "spec": {"template": {"spec": {"containers": [{"name": "app", "image": "bob:1"}]}}},
        });
        let forced = ["--server-side", "--force-conflicts"];
        target.expect(&kubectl.apply(&applied, &forced), Edits(IMAGE));
        target.expect(
            &kubectl.apply(
                &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "demo"}, "data": {"note": "bob"}}),
                &[],
            ),
            Edits("data.note"),
        );
        assert_eq!(contents(&namespace), before, "{origin:?}");
        target.expect_all(&kubectl, FREE);
    });
}

/// Replaces an object by an edited copy, as bob.
fn replaced(namespace: &Namespace<'_>, object: &str, edit: impl FnOnce(&mut Value)) -> Output {
    let kubectl = namespace.kubectl("bob");
    let mut object = kubectl.get(&[object]);
    edit(&mut object);
    // Controllers write the status at the same time.
    object["metadata"].as_object_mut().unwrap().remove("resourceVersion");
    kubectl.with_file("replace", &object, &[])
}

/// What the edits would change.
fn contents(namespace: &Namespace<'_>) -> Vec<Value> {
    let kubectl = namespace.kubectl("admin");
    ["deployment/demo", "configmap/demo", "service/demo"]
        .into_iter()
        .map(|object| {
            let object = kubectl.get(&[object]);
            let metadata = &object["metadata"];
            json!([
                metadata["labels"],
                metadata["annotations"]["meta.helm.sh/release-name"],
                object["spec"],
                object["data"]
            ])
        })
        .collect()
}

#[test]
fn edits_by_service_accounts_are_admitted_and_audited() {
    let (namespace, _) = Origin::Helm4.release("edit-account");
    let bot = namespace.service_account("bot");
    let kubectl = namespace.kubectl_as(&bot);
    kubectl.ok(&["set", "image", "deployment/demo", "app=bot:1"]);
    kubectl.ok(&["patch", "configmap/demo", "--type=merge", "-p", r#"{"data":{"note":"bot"}}"#]);
    kubectl.ok(&["scale", "deployment/demo", "--replicas=3"]);
    kubectl.ok(&["delete", "service/demo"]);
    kubectl.ok(&["label", "deployment/demo", "team=blue"]);
    let wanted = [
        ("UPDATE", "deployments.apps", "manual-edit=audit", "spec.template.spec.containers[app].image is declared"),
        ("UPDATE", "configmaps", "manual-edit=audit", "data.note is declared"),
        ("UPDATE", "deployments.apps/scale", "manual-scale=audit", "spec.replicas is declared"),
        ("DELETE", "services", "manual-delete=audit", "declared by the chart"),
    ];
    for (operation, resource, rule, reason) in wanted {
        eventually(std::time::Duration::from_secs(10), &format!("{operation} of {resource} is recorded"), || {
            let decisions = decisions(&namespace);
            let found = decisions.iter().any(|decision| {
                decision.user == bot.user()
                    && decision.operation == operation
                    && decision.resource == resource
                    && decision.rules == rule
                    && decision.reason.contains(reason)
                    && decision.verdict == "allowed"
            });
            if found { Ok(()) } else { Err(format!("{decisions:#?}")) }
        });
    }
}

#[test]
fn a_field_that_an_edit_took_from_managed_fields_is_still_declared_by_the_manifest() {
    Origin::everywhere(|origin| {
        let (namespace, revision) = origin.release("edit-account-lost");
        let target = Target::deployed(&namespace, "demo", revision);
        let bot = namespace.kubectl_as(&namespace.service_account("bot"));
        let kubectl = namespace.kubectl("bob");
        // One field has moved to another manager, and the ConfigMap has no managedFields.
        bot.ok(&["set", "image", "deployment/demo", "app=bot:1"]);
        bot.ok(&["patch", "configmap/demo", "--type=merge", "-p", r#"{"metadata":{"managedFields":[{}]}}"#]);
        let fields = kubectl.ok(&["get", "configmap/demo", "--show-managed-fields", "-o", "json"]).json();
        assert_eq!(fields["metadata"]["managedFields"], Value::Null, "{origin:?}");
        target.expect_all(
            &kubectl,
            &[
                ("the image again", &["set", "image", "deployment/demo", "app=bob:1"], Edits(IMAGE)),
                (
                    "the value",
                    &["patch", "configmap/demo", "--type=merge", "-p", r#"{"data":{"note":"bob"}}"#],
                    Edits("data.note"),
                ),
                ("another key", &["patch", "configmap/demo", "--type=merge", "-p", r#"{"data":{"mine":"1"}}"#], Passes),
                ("the declared image", &["set", "image", "deployment/demo", "app=registry.invalid/app:1"], Passes),
            ],
        );
    });
}
