// Package configmap changes a directory as the kubelet changes the volume of a ConfigMap: the files
// are links through "..data", which is what is switched.
package configmap

import (
	"os"
	"path/filepath"
)

// Write gives a directory another version with one file. Former versions stay; Remove removes one.
func Write(directory, version, name, text string) error {
	data := filepath.Join(directory, "..version-"+version)
	if err := os.Mkdir(data, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(data, name), []byte(text), 0o644); err != nil {
		return err
	}
	link := filepath.Join(directory, "..data")
	if err := os.Symlink(filepath.Base(data), link+"_tmp"); err != nil {
		return err
	}
	if err := os.Rename(link+"_tmp", link); err != nil {
		return err
	}
	file := filepath.Join(directory, name)
	if _, err := os.Lstat(file); err == nil {
		return nil
	}
	return os.Symlink(filepath.Join("..data", name), file)
}

// Remove removes a version that is not in use.
func Remove(directory, version string) error {
	return os.RemoveAll(filepath.Join(directory, "..version-"+version))
}
