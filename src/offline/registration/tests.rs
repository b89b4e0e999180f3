use std::collections::BTreeMap;

use interlock_engine::review::Review;
use serde_json::{Value, json};

use super::*;

const HELM_CONTROLLER: &str = "system:serviceaccount:flux-system:helm-controller";

/// A request by alice: `group/resource/subresource`, the namespace, the object and the old object.
fn request(operation: &str, path: [&str; 3], namespace: &str, object: Value, old: Value) -> Value {
    let [group, resource, sub_resource] = path;
    let version = if group == "helm.toolkit.fluxcd.io" { "v2" } else { "v1" };
    json!({
        "uid": "u1", "operation": operation, "name": "web", "namespace": namespace, "subResource": sub_resource,
        "userInfo": {"username": "alice", "groups": ["devs"]}, "object": object, "oldObject": old,
        "kind": {"group": group, "version": version, "kind": "Any"},
        "resource": {"group": group, "version": version, "resource": resource},
    })
}

fn by(user: &str, mut request: Value) -> Value {
    request["userInfo"]["username"] = user.into();
    request
}

fn answer_of(registration: &Registration, request: &Value, labels: Option<&BTreeMap<String, String>>) -> Sending {
    let review =
        json!({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": request}).to_string();
    let review = Review::parse(review.as_bytes()).unwrap();
    registration.sending(&review.request, &|_| labels.cloned())
}

/// The answer of the shipped registration.
fn answer(request: &Value) -> Sending {
    answer_of(&Registration::shipped().unwrap(), request, None)
}

fn condition(name: &str) -> Option<String> {
    Some(format!("by the match condition {name}"))
}

/// Why the shipped registration does not send a request; `None` if it sends the request.
fn why_not(request: &Value) -> Option<String> {
    match answer(request) {
        Sending::Sent => None,
        Sending::NotSent { why, .. } => Some(why.to_string()),
        Sending::Unsure(why) => panic!("{why}"),
    }
}

const DEPLOYMENT: [&str; 3] = ["apps", "deployments", ""];
const SECRET: [&str; 3] = ["", "secrets", ""];
const HELM_RELEASE: [&str; 3] = ["helm.toolkit.fluxcd.io", "helmreleases", ""];

fn deployment(replicas: u32) -> Value {
    json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "spec": {"replicas": replicas},
        "metadata": {
            "name": "web", "labels": {"app.kubernetes.io/managed-by": "Helm"},
            "annotations": {"meta.helm.sh/release-name": "web", "meta.helm.sh/release-namespace": "shop"},
        },
    })
}

fn record() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "helm.sh/release.v1",
        "metadata": {"name": "sh.helm.release.v1.web.v1", "labels": {"owner": "helm", "status": "deployed"}},
    })
}

fn edit(namespace: &str) -> Value {
    request("UPDATE", DEPLOYMENT, namespace, deployment(3), deployment(2))
}

#[test]
fn an_ordinary_edit_and_an_operation_are_sent() {
    assert_eq!(why_not(&edit("shop")), None);
    assert_eq!(why_not(&request("DELETE", DEPLOYMENT, "shop", Value::Null, deployment(2))), None);
    for (operation, object, old) in
        [("CREATE", record(), Value::Null), ("UPDATE", record(), record()), ("DELETE", Value::Null, record())]
    {
        assert_eq!(why_not(&request(operation, SECRET, "shop", object, old)), None, "{operation}");
    }
}

#[test]
fn its_own_namespace_and_kube_system_are_not_sent() {
    for namespace in ["interlock-system", "kube-system", "kube-node-lease"] {
        let wanted = Some("in namespaces that the entries leave out".to_owned());
        assert_eq!(why_not(&edit(namespace)), wanted, "{namespace}");
        // The other entries have no rule for it.
        assert_eq!(why_not(&request("CREATE", SECRET, namespace, record(), Value::Null)), wanted, "{namespace}");
    }
    // An object without a namespace belongs to a namespace through its release.
    let mut role = deployment(1);
    let path = ["rbac.authorization.k8s.io", "clusterroles", ""];
    assert_eq!(why_not(&request("UPDATE", path, "", role.clone(), role.clone())), None);
    role["metadata"]["annotations"]["meta.helm.sh/release-namespace"] = "interlock-system".into();
    assert_eq!(why_not(&request("UPDATE", path, "", role.clone(), role)), condition("objects-of-releases"));
}

#[test]
fn the_namespace_of_a_namespace_is_itself() {
    let namespaces = ["", "namespaces", ""];
    assert_eq!(why_not(&request("UPDATE", namespaces, "web", deployment(1), deployment(1))), None);
    let own = request("UPDATE", namespaces, "kube-system", deployment(1), deployment(1));
    assert_eq!(why_not(&own), Some("in namespaces that the entries leave out".to_owned()));
}

#[test]
fn a_write_of_status_is_not_sent() {
    let status = request("UPDATE", ["apps", "deployments", "status"], "shop", deployment(3), deployment(2));
    let wanted = Some("of resources, subresources and operations without an entry".to_owned());
    assert_eq!(why_not(&status), wanted);
    assert_eq!(why_not(&request("CREATE", DEPLOYMENT, "shop", deployment(2), Value::Null)), wanted);
    let scale = request("UPDATE", ["apps", "deployments", "scale"], "shop", json!({}), json!({}));
    assert_eq!(why_not(&scale), None);
    let autoscaler = "system:serviceaccount:kube-system:horizontal-pod-autoscaler";
    assert_eq!(why_not(&by(autoscaler, scale)), condition("not-autoscaling"));
}

#[test]
fn a_metadata_write_is_not_sent_if_the_entry_excludes_it() {
    let release = |version: &str, note: &str| json!({"metadata": {"name": "web", "annotations": {"note": note}}, "spec": {"chart": {"version": version}}});
    let write = |new, old| by(HELM_CONTROLLER, request("UPDATE", HELM_RELEASE, "shop", new, old));
    assert_eq!(why_not(&write(release("1", "b"), release("1", "a"))), condition("loses-its-protection"));
    assert_eq!(why_not(&write(release("2", "a"), release("1", "a"))), None);
    // Other entries send such writes.
    assert_eq!(why_not(&request("UPDATE", SECRET, "shop", record(), record())), None);
}

#[test]
fn a_deletion_by_the_namespace_controller_is_not_sent() {
    let deletions = [
        request("DELETE", SECRET, "shop", Value::Null, record()),
        request("DELETE", DEPLOYMENT, "shop", Value::Null, deployment(1)),
    ];
    for deletion in deletions {
        for user in [
            "system:serviceaccount:kube-system:namespace-controller",
            "system:serviceaccount:kube-system:generic-garbage-collector",
            "system:kube-controller-manager",
        ] {
            assert_eq!(why_not(&by(user, deletion.clone())), condition("not-cascading-deletion"), "{user}");
        }
        assert_eq!(why_not(&by("system:serviceaccount:shop:namespace-controller", deletion)), None);
    }
}

#[test]
fn an_answer_is_certain_if_no_object_could_change_it() {
    let is_certain = |request: &Value| match answer(request) {
        Sending::NotSent { is_certain, .. } => is_certain,
        other => panic!("{other:?}"),
    };
    let unseen = request("DELETE", SECRET, "shop", Value::Null, Value::Null);
    assert!(!is_certain(&unseen), "it may have been a record");
    assert!(is_certain(&by("system:serviceaccount:kube-system:namespace-controller", unseen)));
    assert!(is_certain(&request("DELETE", SECRET, "kube-system", Value::Null, Value::Null)));
}

#[test]
fn objects_of_no_release_are_not_sent() {
    let mut plain = deployment(1);
    plain["metadata"].as_object_mut().unwrap().remove("labels");
    let edit = |new: &Value, old: &Value| request("UPDATE", DEPLOYMENT, "shop", new.clone(), old.clone());
    // Some owners mark their objects with an annotation, which no selector can ask for.
    let wanted = Some("by the match condition objects-of-applications".to_owned());
    assert_eq!(why_not(&edit(&plain, &plain)), wanted);
    // The old object counts too.
    assert_eq!(why_not(&edit(&plain, &deployment(1))), None);
    let certificate = json!({"metadata": {"name": "tls"}, "type": "kubernetes.io/tls"});
    assert!(why_not(&request("CREATE", SECRET, "shop", certificate, Value::Null)).is_some());
}

#[test]
fn another_version_is_converted_and_sent() {
    let mut old = edit("shop");
    old["resource"]["version"] = "v1beta1".into();
    assert_eq!(why_not(&old), None);
}

/// A registration with one entry.
fn registration(entry: &str) -> Result<Registration, BadRegistration> {
    let rules = "rules: [{operations: ['*'], apiGroups: ['*'], apiVersions: ['*'], resources: ['*']}]";
    Registration::parse(&format!(
        "kind: ValidatingWebhookConfiguration\nwebhooks:\n- name: any.interlock.dev\n  {rules}\n  clientConfig: {{}}\n  \
         admissionReviewVersions: [v1]\n  sideEffects: None\n{entry}\n"
    ))
}

#[test]
fn labels_of_a_namespace_that_is_unknown_leave_the_answer_open() {
    let guarded = registration("  namespaceSelector: {matchLabels: {guarded: 'yes'}}").unwrap();
    let labels = |value: &str| BTreeMap::from([("guarded".to_owned(), value.to_owned())]);
    assert_eq!(answer_of(&guarded, &edit("shop"), None), Sending::Unsure(Doubt::NamespaceLabels));
    assert_eq!(answer_of(&guarded, &edit("shop"), Some(&labels("yes"))), Sending::Sent);
    let not_sent = Sending::not_sent(NotSent::Namespace);
    assert_eq!(answer_of(&guarded, &edit("shop"), Some(&labels("no"))), not_sent);
    // The request for a Namespace contains its labels.
    let mut object = deployment(1);
    object["metadata"]["labels"] = json!({"guarded": "no"});
    let namespace = request("UPDATE", ["", "namespaces", ""], "web", object.clone(), object);
    assert_eq!(answer_of(&guarded, &namespace, Some(&labels("yes"))), not_sent);
}

#[test]
fn only_a_false_condition_overrides_an_unevaluable_one() {
    let of = |conditions: &str| registration(&format!("  matchConditions: [{conditions}]")).unwrap();
    let broken = "{name: broken, expression: object.none == 1}";
    let doubt = Sending::Unsure(Doubt::Condition("broken".into()));
    assert_eq!(answer_of(&of(broken), &edit("shop"), None), doubt);
    let decided = of(&format!("{broken}, {{name: few, expression: 'object.spec.replicas > 3'}}"));
    assert_eq!(
        answer_of(&decided, &edit("shop"), None),
        Sending::not_sent_by_objects(NotSent::Condition(1, "few".into()))
    );
    let authorizer = of("{name: broken, expression: \"authorizer.group('').resource('pods').check('get').allowed()\"}");
    assert_eq!(answer_of(&authorizer, &edit("shop"), None), doubt);
    let account = of("{name: devs, expression: \"'devs' in request.userInfo.groups && !request.dryRun\"}");
    assert_eq!(answer_of(&account, &edit("shop"), None), Sending::Sent);
}

#[test]
fn a_bad_registration_is_an_error_that_names_the_entry() {
    let why = |entry: &str| registration(entry).err().unwrap().to_string();
    assert!(
        why("  matchConditions: [{name: cut, expression: 'object.'}]")
            .starts_with("entry any.interlock.dev: match condition cut: ")
    );
    let selector = why("  objectSelector: {matchExpressions: [{key: a, operator: Near}]}");
    assert!(selector.starts_with("entry any.interlock.dev: objectSelector: "), "{selector}");
    let parse = |text: &str| Registration::parse(text).err().unwrap().to_string();
    assert!(parse("a: [").contains("line"), "{}", parse("a: ["));
    assert!(parse("kind: Secret").starts_with("it has no ValidatingWebhookConfiguration"));
    assert!(parse("kind: ValidatingWebhookConfiguration\nwebhooks: 5").contains("cannot be parsed"));
}

#[test]
fn a_list_of_configurations_is_read_too() {
    let text = include_str!("../../../manifests/base/validating-webhooks.yaml");
    let configuration: Value = serde_saphyr::from_str(text).unwrap();
    let list = json!({"kind": "List", "items": [{"kind": "Secret"}, configuration]}).to_string();
    assert_eq!(Registration::parse(&list).unwrap().entries.len(), Registration::shipped().unwrap().entries.len());
}

#[test]
fn every_condition_of_the_overlays_compiles() {
    let text = include_str!("../../../manifests/overlays/protected-releases/entries.yaml");
    let protected = Registration::parse(text).unwrap();
    let deletion = request("DELETE", ["apps", "deployments", ""], "shop", Value::Null, deployment(1));
    assert_eq!(answer_of(&protected, &deletion, None), Sending::Sent);
    let mut unmarked = deployment(1);
    unmarked["metadata"].as_object_mut().unwrap().remove("annotations");
    let loses = request("UPDATE", ["apps", "deployments", ""], "shop", unmarked, deployment(1));
    assert_eq!(answer_of(&protected, &loses, None), Sending::Sent);
    let keeps = request("UPDATE", ["apps", "deployments", ""], "shop", deployment(2), deployment(1));
    assert!(matches!(
        answer_of(&protected, &keeps, None),
        Sending::NotSent { why: NotSent::Condition(..), is_certain: false }
    ));
}
