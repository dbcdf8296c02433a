package cache

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
)

// Nothing is written, and nothing read, while the path does not name the files that are open.
func TestOpen_DirectoryReplaced_RefusesUntilItIsBack(t *testing.T) {
	t.Parallel()
	remove := func(t *testing.T, dir string) { must.OK(t, os.RemoveAll(dir)) }
	move := func(t *testing.T, dir string) { must.OK(t, os.Rename(dir, dir+".old")) }
	back := func(t *testing.T, dir string) {
		must.OK(t, os.RemoveAll(dir))
		must.OK(t, os.Rename(dir+".old", dir))
	}
	for name, tc := range map[string]struct {
		change, restore func(t *testing.T, dir string)
	}{
		"removed":       {remove, nil},
		"moved":         {move, back},
		"replaced":      {func(t *testing.T, dir string) { move(t, dir); copyDirectory(t, dir+".old", dir) }, back},
		"log removed":   {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, databaseName+logSuffix)) }, nil},
		"index removed": {func(t *testing.T, dir string) { remove(t, filepath.Join(dir, databaseName+indexSuffix)) }, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "data")
			s := must.Get(Open(Options{Dir: dir}))(t)
			table := s.Table("t")
			put(t, table, "key", "value", never)
			if s.State().Replaced || s.State().Free <= 0 {
				t.Errorf("at first: %+v", s.State())
			}
			tc.change(t, dir)
			servertest.Eventually(t, "the loss to be noticed", func() bool { return errors.Is(tryPut(table, "key", "late", never), ErrReplaced) })
			if _, err := table.Get(ctx, "key"); !errors.Is(err, ErrReplaced) || !s.State().Replaced || !errors.Is(s.Ready(ctx), ErrReplaced) {
				t.Errorf("reading: %v, ready: %v, %+v", err, s.Ready(ctx), s.State())
			}
			if tc.restore == nil {
				if err := s.Close(); !errors.Is(err, ErrReplaced) {
					t.Error(err)
				}
				return
			}
			tc.restore(t, dir)
			must.OK(t, s.Ready(ctx))
			put(t, table, "later", "value", never)
			must.OK(t, s.Close())
			expect(t, open(t, Options{Dir: dir}).Table("t"), "later", "value")
		})
	}
}

// A check of the moment sees what the one of each second has not seen yet.
func TestReady_DirectoryReplaced_SaysSoAtOnce(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	s := must.Get(Open(Options{Dir: dir}))(t)
	must.OK(t, os.Rename(dir, dir+".old"))
	if err := s.Ready(ctx); !errors.Is(err, ErrReplaced) {
		t.Error(err)
	}
	_ = s.Close()
}

func copyDirectory(t *testing.T, from, to string) {
	t.Helper()
	must.OK(t, os.Mkdir(to, 0o700))
	copyFiles(t, from, to)
}

// The log of another process that uses the path stays there.
func TestClose_DirectoryReplaced_LeavesTheOther(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "data")
	first := must.Get(Open(Options{Dir: dir}))(t)
	must.OK(t, os.Rename(dir, dir+".old"))
	second := must.Get(Open(Options{Dir: dir}))(t)
	put(t, second.Table("t"), "key", "value", never)
	before := must.Get(os.ReadDir(dir))(t)
	if err := first.Close(); !errors.Is(err, ErrReplaced) {
		t.Error(err)
	}
	if after := must.Get(os.ReadDir(dir))(t); len(after) != len(before) {
		t.Errorf("%v, before %v", after, before)
	}
	must.OK(t, errors.Join(second.Ready(ctx), second.Close()))
}

func TestOpen_OtherFormat_NamesBoth(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	with := func(format int) error {
		s, err := Open(Options{Dir: dir, Format: format})
		if err == nil {
			put(t, s.Table("t"), "key", "value", never)
			err = s.Close()
		}
		return err
	}
	must.OK(t, errors.Join(with(3), with(3)))
	for _, format := range []int{0, 2, 4} {
		if err := with(format); !errors.Is(err, ErrFormat) || !contains(err, "has format 3") || !contains(err, "reads format "+string(rune('0'+format))) {
			t.Errorf("format %d: %v", format, err)
		}
	}
	must.OK(t, with(3))
}
