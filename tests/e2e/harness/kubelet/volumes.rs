//! Volumes, written as a kubelet writes them: all files change at once, by a swap of the link `..data`.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Error, ErrorKind, Result as IoResult};
use std::os::unix::fs::symlink;
use std::path::Path;

use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::{KeyToPath, Pod, Volume};
use kube::ResourceExt;

use super::Node;

/// Paths below the mount, and what is in the files.
pub(super) type Content = BTreeMap<String, Vec<u8>>;

/// The mount of the service account's token. Pods without an image get a kubeconfig instead.
pub(super) const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The content of each of a container's mounts.
pub(super) fn contents(node: &Node, pod: &Pod) -> Result<BTreeMap<String, Content>, String> {
    let spec = pod.spec.as_ref().ok_or("a pod without a specification")?;
    let mounts = spec.containers.iter().flat_map(|container| container.volume_mounts.iter().flatten());
    let mut contents = BTreeMap::new();
    for mount in mounts.filter(|mount| mount.mount_path != ACCOUNT) {
        if mount.sub_path.is_some() || mount.sub_path_expr.is_some() {
            return Err(format!("the mount at {} has a subPath", mount.mount_path));
        }
        let volume = spec.volumes.iter().flatten().find(|volume| volume.name == mount.name);
        let volume = volume.ok_or_else(|| format!("there is no volume {:?}", mount.name))?;
        contents.insert(mount.mount_path.clone(), content(node, volume)?);
    }
    Ok(contents)
}

fn content(node: &Node, volume: &Volume) -> Result<Content, String> {
    if volume.empty_dir.is_some() {
        return Ok(Content::new());
    }
    if let Some(source) = &volume.config_map {
        return config_map(node, &source.name, source.items.as_deref(), source.optional);
    }
    if let Some(source) = &volume.secret {
        let name = source.secret_name.as_deref().unwrap_or_default();
        return secret(node, name, source.items.as_deref(), source.optional);
    }
    let Some(projected) = &volume.projected else { return Err(format!("volume {:?} is of another kind", volume.name)) };
    let mut all = Content::new();
    for source in projected.sources.iter().flatten() {
        if let Some(source) = &source.config_map {
            all.append(&mut config_map(node, &source.name, source.items.as_deref(), source.optional)?);
        } else if let Some(source) = &source.secret {
            all.append(&mut secret(node, &source.name, source.items.as_deref(), source.optional)?);
        } else {
            return Err(format!("volume {:?} has a source of another kind", volume.name));
        }
    }
    Ok(all)
}

fn config_map(node: &Node, name: &str, items: Option<&[KeyToPath]>, optional: Option<bool>) -> Result<Content, String> {
    let Some(object) = node.config_maps.find(|object| object.name_any() == name) else {
        return missing("ConfigMap", name, optional);
    };
    let text = object.data.iter().flatten().map(|(key, value)| (key.clone(), value.clone().into_bytes()));
    let binary = object.binary_data.iter().flatten().map(|(key, ByteString(value))| (key.clone(), value.clone()));
    chosen(text.chain(binary).collect(), items)
}

fn secret(node: &Node, name: &str, items: Option<&[KeyToPath]>, optional: Option<bool>) -> Result<Content, String> {
    let Some(object) = node.secrets.find(|object| object.name_any() == name) else {
        return missing("Secret", name, optional);
    };
    let data = object.data.iter().flatten().map(|(key, ByteString(value))| (key.clone(), value.clone()));
    chosen(data.collect(), items)
}

fn missing(kind: &str, name: &str, optional: Option<bool>) -> Result<Content, String> {
    if optional == Some(true) { Ok(Content::new()) } else { Err(format!("there is no {kind} {name:?}")) }
}

fn chosen(mut all: Content, items: Option<&[KeyToPath]>) -> Result<Content, String> {
    let Some(items) = items else { return Ok(all) };
    let chosen = items.iter().map(|item| match all.remove(&item.key) {
        Some(value) => Ok((item.path.clone(), value)),
        None => Err(format!("there is no key {:?}", item.key)),
    });
    chosen.collect()
}

/// Replaces the content of a mount.
pub(super) fn write(mount: &Path, content: &Content) -> IoResult<()> {
    fs::create_dir_all(mount)?;
    let before = fs::read_link(mount.join("..data")).ok();
    let dir = tempfile::Builder::new().prefix("..").tempdir_in(mount)?.keep();
    for (path, value) in content {
        let file = dir.join(path);
        fs::create_dir_all(file.parent().unwrap_or(&dir))?;
        fs::write(file, value)?;
    }
    let name = dir.file_name().ok_or_else(|| Error::from(ErrorKind::InvalidInput))?;
    symlink(name, mount.join("..data_tmp"))?;
    fs::rename(mount.join("..data_tmp"), mount.join("..data"))?;
    let tops: Vec<_> = content.keys().filter_map(|path| path.split('/').next()).collect();
    for top in &tops {
        if fs::symlink_metadata(mount.join(top)).is_err() {
            symlink(Path::new("..data").join(top), mount.join(top))?;
        }
    }
    for entry in fs::read_dir(mount)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.file_type()?.is_symlink() && !name.starts_with("..") && !tops.contains(&name.as_str()) {
            fs::remove_file(entry.path())?;
        }
    }
    before.map_or(Ok(()), |before| fs::remove_dir_all(mount.join(before)))
}
