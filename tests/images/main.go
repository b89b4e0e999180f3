// Reads an image in the OCI layout with go-containerregistry, the library of crane and of many registries' clients: none of its
// code is Interlock's.
//
//	images inspect LAYOUT NAME            prints the digest and the configuration of the image of a name
//	images unpack LAYOUT NAME DIRECTORY   writes the files of its layers into a directory, which must not exist
//
// Both compare all digests and sizes with the content first.
package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/match"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/validate"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "images:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	switch {
	case len(args) == 3 && args[0] == "inspect":
		return inspect(args[1], args[2])
	case len(args) == 4 && args[0] == "unpack":
		return unpack(args[1], args[2], args[3])
	default:
		return errors.New("usage: images inspect LAYOUT NAME | images unpack LAYOUT NAME DIRECTORY")
	}
}

func inspect(directory, name string) error {
	image, err := valid(directory, name)
	if err != nil {
		return err
	}
	digest, err := image.Digest()
	if err != nil {
		return err
	}
	configuration, err := image.RawConfigFile()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"digest": digest, "configuration": json.RawMessage(configuration)})
}

// valid finds the image and compares what it says with what it has.
func valid(directory, name string) (v1.Image, error) {
	index, err := layout.ImageIndexFromPath(directory)
	if err != nil {
		return nil, err
	}
	manifests, err := partial.FindManifests(index, match.Name(name))
	if err != nil {
		return nil, err
	}
	if len(manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images of the name %s", directory, len(manifests), name)
	}
	wanted := manifests[0].Digest
	image, err := index.Image(wanted)
	if err != nil {
		return nil, err
	}
	if err := validate.Image(image); err != nil {
		return nil, fmt.Errorf("the image %s is not valid: %w", wanted, err)
	}
	// The library takes the manifest that it finds under the name of a digest.
	if digest, err := image.Digest(); err != nil || digest != wanted {
		return nil, errors.Join(fmt.Errorf("the image %s is not valid: its manifest is %s", wanted, digest), err)
	}
	return image, nil
}

func unpack(directory, name, to string) error {
	image, err := valid(directory, name)
	if err != nil {
		return err
	}
	if err := os.Mkdir(to, 0o755); err != nil {
		return err
	}
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	// One archive of all layers, without the files that a later layer removes.
	stream := mutate.Extract(image)
	defer stream.Close()
	entries := tar.NewReader(stream)
	for {
		entry, err := entries.Next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = write(root, entry, entries)
		}
		if err != nil {
			return err
		}
	}
}

func write(root *os.Root, entry *tar.Header, content io.Reader) error {
	mode := entry.FileInfo().Mode().Perm()
	switch entry.Typeflag {
	case tar.TypeDir:
		if err := root.MkdirAll(entry.Name, mode); err != nil {
			return err
		}
	case tar.TypeReg:
		file, err := root.OpenFile(entry.Name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
		if err != nil {
			return err
		}
		_, err = io.Copy(file, content)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
	default:
		return fmt.Errorf("%s is neither a file nor a directory", entry.Name)
	}
	// Only root may give files to other users.
	if os.Geteuid() == 0 {
		if err := root.Lchown(entry.Name, entry.Uid, entry.Gid); err != nil {
			return err
		}
	}
	// After the owner, whose change removes bits; and whatever the umask says.
	return root.Chmod(entry.Name, mode)
}
