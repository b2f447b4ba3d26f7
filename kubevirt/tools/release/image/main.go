// Image writes an image with one static program as an OCI layout in a tar file: what kubevirt/Dockerfile builds, without a
// container runtime. The same program gives the same bytes.
//
//	image PROGRAM ARCH VERSION OUTPUT
package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

func main() {
	if len(os.Args) != 5 {
		fmt.Fprintln(os.Stderr, "usage: image PROGRAM ARCH VERSION OUTPUT")
		os.Exit(2)
	}
	if err := write(os.Args[1], os.Args[2], os.Args[3], os.Args[4]); err != nil {
		fmt.Fprintln(os.Stderr, "image:", err)
		os.Exit(1)
	}
}

// epoch is the time of all files.
var epoch = time.Unix(0, 0).UTC()

func write(program, arch, version, output string) error {
	image, err := build(program, arch, version)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "image-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path, err := layout.Write(dir, empty.Index)
	if err != nil {
		return err
	}
	name := layout.WithAnnotations(map[string]string{"org.opencontainers.image.ref.name": version})
	if err := path.AppendImage(image, name, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: arch})); err != nil {
		return err
	}
	return pack(dir, output)
}

// build returns an image with the program as its only file.
func build(program, arch, version string) (v1.Image, error) {
	name := "/" + filepath.Base(program)
	data, err := os.ReadFile(program)
	if err != nil {
		return nil, err
	}
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	head := &tar.Header{Name: name[1:], Mode: 0o555, Size: int64(len(data)), ModTime: epoch, Typeflag: tar.TypeReg}
	if err := w.WriteHeader(head); err != nil {
		return nil, err
	}
	if _, err := w.Write(data); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil },
		tarball.WithMediaType(types.OCILayer))
	if err != nil {
		return nil, err
	}
	image := mutate.ConfigMediaType(mutate.MediaType(empty.Image, types.OCIManifestSchema1), types.OCIConfigJSON)
	if image, err = mutate.AppendLayers(image, layer); err != nil {
		return nil, err
	}
	return mutate.ConfigFile(image, &v1.ConfigFile{Architecture: arch, OS: "linux", Created: v1.Time{Time: epoch}, RootFS: rootFS(layer),
		Config: v1.Config{User: "65532:65532", Entrypoint: []string{name}, Labels: map[string]string{
			"org.opencontainers.image.version": version, "org.opencontainers.image.licenses": "Apache-2.0",
			"org.opencontainers.image.source": "https://github.com/godwit-vm/godwit"}}})
}

func rootFS(layer v1.Layer) v1.RootFS {
	id, err := layer.DiffID()
	if err != nil {
		panic(err) // it is made from memory
	}
	return v1.RootFS{Type: "layers", DiffIDs: []v1.Hash{id}}
}

// pack writes a folder as a tar file: by name, with the same time and owner for all.
func pack(dir, output string) error {
	f, err := os.Create(output)
	if err != nil {
		return err
	}
	w := tar.NewWriter(f)
	err = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(data)), ModTime: epoch, Typeflag: tar.TypeReg}); err != nil {
			return err
		}
		_, err = w.Write(data)
		return err
	})
	return errors.Join(err, w.Close(), f.Close())
}
