package main

import (
	"context"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/moby/patternmatcher/ignorefile"
	"github.com/tonistiigi/fsutil"
)

// copyContext copies to a folder what an ignore file lets `docker build` see of another, and counts the files.
func copyContext(root, ignore, into string) (files int, err error) {
	list, err := os.Open(ignore)
	if err != nil {
		return 0, err
	}
	defer list.Close()
	patterns, err := ignorefile.ReadAll(list)
	if err != nil {
		return 0, err
	}
	everything, err := fsutil.NewFS(root)
	if err != nil {
		return 0, err
	}
	seen, err := fsutil.NewFilterFS(everything, &fsutil.FilterOpt{ExcludePatterns: patterns})
	if err != nil {
		return 0, err
	}
	err = seen.Walk(context.Background(), "", func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(into, path)
		switch {
		case entry.IsDir():
			return os.MkdirAll(target, 0o755)
		case !entry.Type().IsRegular():
			return nil
		}
		files++
		return copyFile(seen, path, target)
	})
	return files, err
}

func copyFile(from fsutil.FS, path, target string) error {
	source, err := from.Open(path)
	if err != nil {
		return err
	}
	defer source.Close()
	file, err := os.Create(target)
	if err != nil {
		return err
	}
	if _, err := io.Copy(file, source); err != nil {
		file.Close()
		return err
	}
	return file.Close()
}
