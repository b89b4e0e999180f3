//! How a container is started, according to the pod's specification.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::PoisonError;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{Container, EnvVar, EnvVarSource, Pod};
use kube::ResourceExt;

use super::{Node, volumes};
use crate::harness::assets::interlock;

/// The default addresses of `interlock serve`, and the variables that change them.
const PORTS: [(&str, u16); 2] = [("INTERLOCK_LISTEN", 8443), ("INTERLOCK_ADMIN_LISTEN", 8081)];

/// What to run.
#[derive(Debug)]
pub(super) struct Start {
    /// The program, or the command that confines it to its image.
    pub(super) program: Vec<String>,
    pub(super) arguments: Vec<String>,
    pub(super) environment: BTreeMap<String, String>,
    /// The container's ports for reviews and for probes.
    pub(super) ports: [u16; 2],
}

/// The one container of a pod.
pub(super) fn container(pod: &Pod) -> Result<&Container, String> {
    let spec = pod.spec.as_ref().ok_or("a pod without a specification")?;
    if spec.init_containers.as_ref().is_some_and(|containers| !containers.is_empty()) {
        return Err("the pod has init containers".to_owned());
    }
    match spec.containers.as_slice() {
        [container] => Ok(container),
        containers => Err(format!("the pod has {} containers", containers.len())),
    }
}

impl Start {
    /// `root` is the directory of the mounts. `account` says how the pod finds the API server, if its account has a token.
    pub(super) fn of(node: &Node, pod: &Pod, root: &Path, account: BTreeMap<String, String>) -> Result<Self, String> {
        let container = container(pod)?;
        if container.env_from.as_ref().is_some_and(|sources| !sources.is_empty()) || container.lifecycle.is_some() {
            return Err("the container has envFrom or a lifecycle".to_owned());
        }
        let mut mounts: Vec<_> =
            container.volume_mounts.iter().flatten().map(|mount| mount.mount_path.as_str()).collect();
        mounts.sort_unstable_by_key(|path| std::cmp::Reverse(path.len()));
        // In an image, the root is `/`.
        let moved = |value: &str| if node.image.is_some() { value.to_owned() } else { moved(value, &mounts, root) };
        let mut environment = BTreeMap::new();
        for variable in container.env.iter().flatten() {
            if let Some(value) = value(node, pod, variable)? {
                environment.insert(variable.name.clone(), moved(&value));
            }
        }
        // The image's entry point is the program itself, so a command can only repeat its name.
        let command = container.command.iter().flatten().skip(1).chain(container.args.iter().flatten());
        let arguments = command.map(|argument| moved(argument)).collect();
        let ports = PORTS.map(|(variable, default)| {
            let message = environment.get(variable).and_then(|address| address.rsplit(':').next()?.parse().ok());
            message.unwrap_or(default)
        });
        // Pods share this machine's ports.
        for (variable, _) in PORTS {
            environment.insert(variable.to_owned(), "127.0.0.1:0".to_owned());
        }
        environment.insert("HOSTNAME".to_owned(), pod.name_any());
        environment.extend(node.environment.lock().unwrap_or_else(PoisonError::into_inner).clone());
        environment.extend(account);
        let program = match &node.image {
            Some(image) => image.confined(root, pod),
            None => vec![interlock()?.to_string_lossy().into_owned()],
        };
        Ok(Self { program, arguments, environment, ports })
    }
}

/// Whether the pod is given a token of its service account.
pub(super) fn has_token(pod: &Pod) -> bool {
    let mounts = container(pod).ok().and_then(|container| container.volume_mounts.as_ref());
    mounts.into_iter().flatten().any(|mount| mount.mount_path == volumes::ACCOUNT)
}

/// Translates a path below a mount to this machine, also inside a flag's value.
fn moved(value: &str, mounts: &[&str], root: &Path) -> String {
    let (flag, path) = match value.split_once('=') {
        Some((flag, path)) if flag.starts_with("--") => (format!("{flag}="), path),
        _ => (String::new(), value),
    };
    let below = |mount: &&&str| path.strip_prefix(**mount).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    if mounts.iter().find(below).is_some() { format!("{flag}{}{path}", root.display()) } else { value.to_owned() }
}

/// The value of a variable. `None` if an optional source does not exist.
fn value(node: &Node, pod: &Pod, variable: &EnvVar) -> Result<Option<String>, String> {
    let Some(source) = &variable.value_from else { return Ok(Some(variable.value.clone().unwrap_or_default())) };
    let unknown = || format!("the source of the variable {} is not known here", variable.name);
    match source {
        EnvVarSource { field_ref: Some(field), .. } => {
            let spec = pod.spec.as_ref();
            let value = match field.field_path.as_str() {
                "metadata.name" => pod.metadata.name.clone(),
                "metadata.namespace" => pod.metadata.namespace.clone(),
                "metadata.uid" => pod.metadata.uid.clone(),
                "spec.nodeName" => spec.and_then(|spec| spec.node_name.clone()),
                "spec.serviceAccountName" => spec.and_then(|spec| spec.service_account_name.clone()),
                _ => return Err(unknown()),
            };
            Ok(value)
        }
        EnvVarSource { config_map_key_ref: Some(key), .. } => {
            let object = node.config_maps.find(|object| object.name_any() == key.name);
            let value = object.and_then(|object| object.data.as_ref()?.get(&key.key).cloned());
            if value.is_none() && key.optional != Some(true) { Err(unknown()) } else { Ok(value) }
        }
        EnvVarSource { secret_key_ref: Some(key), .. } => {
            let object = node.secrets.find(|object| object.name_any() == key.name);
            let value = object.and_then(|object| object.data.as_ref()?.get(&key.key).cloned());
            let value = value.map(|ByteString(value)| String::from_utf8_lossy(&value).into_owned());
            if value.is_none() && key.optional != Some(true) { Err(unknown()) } else { Ok(value) }
        }
        _ => Err(unknown()),
    }
}
