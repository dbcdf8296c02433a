package cache

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// A faulty store is a real disk until it is told to fail.
type faulty struct {
	*Disk
	getErr, putErr, deleteErr error
	applied                   bool // a write that fails was made all the same
	damage                    func(value []byte) []byte
	gets                      int
}

func (f *faulty) get(key []byte, read func([]byte) error) (bool, error) {
	f.gets++
	if f.getErr != nil {
		return false, f.getErr
	}
	return f.Disk.get(key, func(value []byte) error {
		if f.damage != nil {
			value = f.damage(value)
		}
		return read(value)
	})
}

func (f *faulty) put(key, value []byte, ttl int64) error {
	if f.putErr != nil && !f.applied {
		return f.putErr
	}
	return errors.Join(f.Disk.put(key, value, ttl), f.putErr)
}

func (f *faulty) delete(key []byte) error {
	if f.deleteErr != nil && !f.applied {
		return f.deleteErr
	}
	return errors.Join(f.Disk.delete(key), f.deleteErr)
}

func openFaulty(t *testing.T) (*faulty, *Map[int]) {
	f := &faulty{Disk: open(t, DiskOptions{Dir: t.TempDir()})}
	return f, openSized(t, f, "faulty", roomy)
}

var errDrive = fmt.Errorf("%w: the drive is on fire", ErrDisk)

// When a write fails, the caller is told, nothing of it is remembered, and the next
// read says what the disk says: the old value, or the new one if it got that far.
func TestAWriteFails(t *testing.T) {
	for name, tc := range map[string]struct {
		before  bool // whether there is a value before, which is 1
		edit    Edit[int]
		applied bool
		after   string
	}{
		"put":                        {true, Put(2, never), false, "1 true"},
		"put that was made":          {true, Put(2, never), true, "2 true"},
		"first put":                  {false, Put(2, never), false, "0 false"},
		"first put that was made":    {false, Put(2, never), true, "2 true"},
		"remove":                     {true, Remove[int](), false, "1 true"},
		"remove that was made":       {true, Remove[int](), true, "0 false"},
		"remove of nothing":          {false, Remove[int](), false, "0 false"},
		"keep, which writes nothing": {true, Keep[int](), false, "1 true"},
	} {
		t.Run(name, func(t *testing.T) {
			f, m := openFaulty(t)
			if tc.before {
				set(t, m, "key", 1)
			}
			f.putErr, f.deleteErr, f.applied = errDrive, errDrive, tc.applied
			err := m.Update(context.Background(), "key", at(0), func(int, bool, int64) Edit[int] { return tc.edit })
			if wrote := tc.edit.kind != keep; wrote != errors.Is(err, ErrDisk) {
				t.Fatalf("update: %v", err)
			}
			if tc.edit.kind != keep {
				if n, found := m.Recall("key", 0); found {
					t.Fatalf("after a write that failed %d is remembered", n)
				}
			}
			for range 2 {
				n, found, _, err := m.Get(context.Background(), "key", at(0))
				if got := fmt.Sprint(n, found); got != tc.after || err != nil {
					t.Fatalf("get: %s, %v; want %s", got, err, tc.after)
				}
			}
		})
	}
}

// A read that fails is an error and never "not found": that would be a yes.
func TestAReadFails(t *testing.T) {
	f, m := openFaulty(t)
	set(t, m, "known", 1)
	m.hot.Wait()
	f.getErr = errDrive
	expect(t, m, "known", 1) // from memory
	for _, key := range []string{"known", "unknown"} {
		m.hot.Clear()
		for range 2 {
			if n, found, _, err := m.Get(context.Background(), key, at(0)); found || !errors.Is(err, ErrDisk) {
				t.Errorf("get %s: %d, %t, %v", key, n, found, err)
			}
			err := m.Update(context.Background(), key, at(0), func(int, bool, int64) Edit[int] {
				t.Errorf("update %s: the edit ran without knowing the value", key)
				return Put(2, never)
			})
			if !errors.Is(err, ErrDisk) {
				t.Errorf("update %s: %v", key, err)
			}
		}
	}
	f.getErr = nil
	expect(t, m, "known", 1)
	expectAbsent(t, m, "unknown")
}

func TestAValueIsCorrupt(t *testing.T) {
	for name, damage := range map[string]func([]byte) []byte{
		"nothing left": func([]byte) []byte { return nil },
		"no value":     func(b []byte) []byte { return b[:10] },
		"cut expiry":   func([]byte) []byte { return []byte{0xff} },
		"more":         func(b []byte) []byte { return append(append([]byte{}, b...), 1) },
	} {
		t.Run(name, func(t *testing.T) {
			f, m := openFaulty(t)
			set(t, m, "key", 1)
			m.hot.Clear()
			f.damage = damage
			for range 2 { // and nothing of it is remembered
				if n, found, _, err := m.Get(context.Background(), "key", at(0)); found || !errors.Is(err, ErrCorrupt) {
					t.Fatalf("get: %d, %t, %v", n, found, err)
				}
			}
			err := m.Update(context.Background(), "key", at(0), func(int, bool, int64) Edit[int] { return Put(2, never) })
			if !errors.Is(err, ErrCorrupt) {
				t.Fatalf("update: %v", err)
			}
			f.damage = nil
			expect(t, m, "key", 1)
		})
	}
}

// What is in memory is not asked for on disk.
func TestReadsComeFromMemory(t *testing.T) {
	f, m := openFaulty(t)
	set(t, m, "key", 1)
	m.hot.Wait()
	before := f.gets
	for range 1000 {
		expect(t, m, "key", 1)
	}
	set(t, m, "key", 2)
	expect(t, m, "key", 2)
	if f.gets != before {
		t.Fatalf("%d reads of the disk", f.gets-before)
	}
	if allocs := testing.AllocsPerRun(10_000, func() { _, _, _, _ = m.Get(context.Background(), "key", at(0)) }); allocs != 0 {
		t.Errorf("%v allocations for a Get", allocs)
	}
}
