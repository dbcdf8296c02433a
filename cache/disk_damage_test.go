package cache

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/mailgate/mailgate/internal/must"
	"github.com/mailgate/mailgate/internal/servertest"
	"zombiezen.com/go/sqlite/sqlitex"
)

// filled returns a directory that was closed, with records of these keys.
func filled(t *testing.T, n int) (dir string, keys []string) {
	t.Helper()
	dir = t.TempDir()
	s := must.Get(Open(Options{Dir: dir}))(t)
	for i := range n {
		key := fmt.Sprintf("key %c%c", 'a'+i%26, 'A'+i/26)
		put(t, s.Table("t"), key, "of "+key, never)
		keys = append(keys, key)
	}
	must.OK(t, s.Close())
	return dir, keys
}

// flip changes one bit of a file, by its number.
func flip(t *testing.T, path string, bit int) {
	t.Helper()
	damage(t, path, func(b []byte) []byte { b[bit/8] ^= 1 << (bit % 8); return b })
}

// bitOf is the number of a bit of the text in a file.
func bitOf(t *testing.T, path, text string, bit int) int {
	t.Helper()
	at := bytes.Index(must.Get(os.ReadFile(path))(t), []byte(text))
	if at < 0 {
		t.Fatalf("%q is not in %s", text, path)
	}
	return 8*at + bit
}

// Whichever bit of the database has changed: either it is not opened, or nothing is forgotten.
func TestOpen_FlippedBit_ForgetsNothing(t *testing.T) {
	t.Parallel()
	const flips = 100
	from, keys := filled(t, 60)
	random := rand.New(rand.NewPCG(1, 2))
	bits := int(must.Get(os.Stat(filepath.Join(from, databaseName)))(t).Size()) * 8
	var refused atomic.Int64
	t.Run("one of", func(t *testing.T) {
		for range flips {
			bit := random.IntN(bits)
			t.Run(fmt.Sprintf("bit %d", bit), func(t *testing.T) {
				t.Parallel() // most of the time is the disk's
				dir := t.TempDir()
				copyFiles(t, from, dir)
				flip(t, filepath.Join(dir, databaseName), bit)
				s, err := Open(Options{Dir: dir})
				if err != nil {
					refused.Add(1)
					return
				}
				for _, key := range keys {
					if value, err := s.Table("t").Get(ctx, key); err != nil || string(value) != "of "+key {
						t.Errorf("%s is %q, %v", key, value, err)
						break
					}
				}
				must.OK(t, s.Close())
			})
		}
	})
	if refused.Load() < flips/5 {
		t.Errorf("%d of %d were refused", refused.Load(), flips)
	}
}

// damagedRecord has the bit that damages a record, counted from the end of its key: in the key's last letter, so
// that the order of the keys stays, or the sign of the expiry behind it, so that the record has expired.
var damagedRecord = map[string]int{"key": -3, "expiry": 7}

// damageRecord flips that bit of the record of a key.
func damageRecord(t *testing.T, path, key, what string) {
	t.Helper()
	flip(t, path, bitOf(t, path, "t/"+key, 8*len("t/"+key)+damagedRecord[what]))
}

// A damaged record is found before the start, and the operator can start without it.
func TestOpen_DamagedRecord_RefusesUntilAccepted(t *testing.T) {
	t.Parallel()
	for what := range damagedRecord {
		t.Run(what, func(t *testing.T) { testOpenDamaged(t, what) })
	}
}

func testOpenDamaged(t *testing.T, what string) {
	dir, keys := filled(t, 20)
	path := filepath.Join(dir, databaseName)
	damageRecord(t, path, keys[7], what)
	for range 2 {
		if _, err := Open(Options{Dir: dir}); !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "remove "+filepath.Join(dir, lockName)) {
			t.Fatal(err)
		}
	}
	must.OK(t, os.Remove(filepath.Join(dir, lockName)))
	var log bytes.Buffer
	s := must.Get(Open(Options{Dir: dir, Log: logTo(&log)}))(t)
	if said := log.String(); strings.Count(said, "\n") != 1 || !strings.Contains(said, "removed=1") {
		t.Errorf("logged %s", said)
	}
	for _, key := range keys {
		if key == keys[7] {
			expectNone(t, s.Table("t"), key)
		} else {
			expect(t, s.Table("t"), key, "of "+key)
		}
	}
	must.OK(t, s.Close())
	must.OK(t, must.Get(Open(Options{Dir: dir}))(t).Close())
}

// Damage of a page that is read again while the store is open is found by the sweep. From then on
// a key without a record may be the damaged one.
func TestSweep_DamagedRecord_NothingIsForgotten(t *testing.T) {
	t.Parallel()
	for what := range damagedRecord {
		t.Run(what, func(t *testing.T) { testSweepDamaged(t, what) })
	}
}

func testSweepDamaged(t *testing.T, what string) {
	dir, keys := filled(t, 20)
	s := must.Get(Open(Options{Dir: dir}))(t)
	d, path := s.records.(*disk), filepath.Join(dir, databaseName)
	sweep := func() (string, error) { return d.db.sweep("", never) }
	for _, pragma := range []string{"wal_checkpoint(TRUNCATE)", "shrink_memory"} {
		_, err := query(ctx, d, func() (any, error) { return nil, sqlitex.ExecuteTransient(d.db.conn, "PRAGMA "+pragma, nil) })
		must.OK(t, err)
	}
	damageRecord(t, path, keys[7], what)
	if _, err := query(ctx, d, sweep); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the sweep: %v", err)
	}
	if _, err := s.Table("t").Get(ctx, keys[7]); !errors.Is(err, ErrCorrupt) {
		t.Errorf("the damaged key: %v", err)
	}
	if err := tryPut(s.Table("t"), keys[7], "another", never); !errors.Is(err, ErrCorrupt) {
		t.Errorf("writing the damaged key: %v", err)
	}
	if err := s.Ready(ctx); !errors.Is(err, ErrCorrupt) {
		t.Errorf("ready: %v", err)
	}
	expect(t, s.Table("t"), keys[8], "of "+keys[8]) // and nothing was deleted
	must.OK(t, s.Close())
}

// killed returns a directory as a process left it that was killed, and the keys in the order in which it wrote them.
func killed(t *testing.T) (dir string, keys []string) {
	t.Helper()
	if dir := servertest.ChildArgument(); dir != "" {
		table := open(t, Options{Dir: dir}).Table("t")
		for i := range 200 {
			key := fmt.Sprint("key", i)
			put(t, table, key, "of "+key, never)
			fmt.Println("acknowledged", key)
		}
		select {}
	}
	dir = t.TempDir()
	servertest.KillAfter(t, servertest.Child(t, dir), 200, func(line string) bool {
		key, counts := strings.CutPrefix(line, "acknowledged ")
		if counts {
			keys = append(keys, key)
		}
		return counts
	})
	return dir, keys
}

// A process that is killed leaves at most the write behind the last acknowledged one unfinished. Only damage takes
// more, unless the power was cut: then the drive may have later writes alone.
func TestOpen_DamagedLog_Refuses(t *testing.T) {
	t.Parallel()
	from, keys := killed(t)
	const frame = 24 + 4096
	log := must.Get(os.ReadFile(filepath.Join(from, databaseName+logSuffix)))(t)
	frames := (len(log) - 32) / frame
	if frames < 200 || binary.BigEndian.Uint32(log[8:]) != 4096 {
		t.Fatalf("%d frames", frames)
	}
	middle := 32 + frames/2*frame
	for name, tc := range map[string]struct {
		change   func(b []byte) []byte
		powerCut bool
		opens    bool
	}{
		"unchanged":              {nil, false, true},
		"empty":                  {func(b []byte) []byte { return nil }, false, false},
		"empty after power cut":  {func(b []byte) []byte { return nil }, true, false},
		"header":                 {func(b []byte) []byte { b[17] ^= 1; return b }, false, false},
		"page in the middle":     {func(b []byte) []byte { b[middle+999] ^= 8; return b }, false, false},
		"sum in the middle":      {func(b []byte) []byte { b[middle+17] ^= 1; return b }, false, false},
		"salt in the middle":     {func(b []byte) []byte { b[middle+9] ^= 1; return b }, false, false},
		"middle after power cut": {func(b []byte) []byte { b[middle+999] ^= 8; return b }, true, true},
		"cut off":                {func(b []byte) []byte { return b[:len(b)-frame-99] }, false, false},
		"cut in the middle":      {func(b []byte) []byte { return b[:middle+99] }, false, false},
		"cut after power cut":    {func(b []byte) []byte { return b[:middle+99] }, true, true},
		"page at the end":        {func(b []byte) []byte { b[32+(frames-1)*frame+999] ^= 8; return b }, false, false},
		"write under way":        {func(b []byte) []byte { return append(b, b[len(b)-frame:len(b)-99]...) }, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			copyFiles(t, from, dir)
			lock, path := filepath.Join(dir, lockName), filepath.Join(dir, databaseName+logSuffix)
			if tc.change != nil {
				damage(t, path, tc.change)
			}
			if tc.powerCut {
				damage(t, lock, anotherBoot)
			}
			for range 2 {
				s, err := Open(Options{Dir: dir})
				if tc.opens {
					must.OK(t, err)
					expect(t, s.Table("t"), keys[0], "of "+keys[0])
					must.OK(t, s.Close())
				} else if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), path) || !strings.Contains(err.Error(), "remove "+lock) {
					t.Fatalf("opened: %v", err)
				}
			}
			if tc.opens {
				return
			}
			must.OK(t, os.Remove(lock))
			var said bytes.Buffer
			s := must.Get(Open(Options{Dir: dir, Log: logTo(&said)}))(t)
			if !strings.Contains(said.String(), "in-use") {
				t.Errorf("logged %s", &said)
			}
			put(t, s.Table("t"), "later", "value", never)
			must.OK(t, s.Close())
		})
	}
}

// What the log still had behind the damage is not taken for damage again.
func TestOpen_AcceptedDamage_IsForgotten(t *testing.T) {
	t.Parallel()
	if argument := servertest.ChildArgument(); argument != "" && strings.HasSuffix(argument, "again") {
		s := must.Get(Open(Options{Dir: strings.TrimSuffix(argument, "again")}))(t)
		put(t, s.Table("t"), "later", "value", never)
		fmt.Println("written")
		select {}
	}
	dir, _ := killed(t)
	path := filepath.Join(dir, databaseName+logSuffix)
	damage(t, path, func(b []byte) []byte { b[len(b)/2] ^= 8; return b })
	must.OK(t, os.Remove(filepath.Join(dir, lockName)))
	servertest.KillAfter(t, servertest.Child(t, dir+"again"), 1, func(line string) bool { return line == "written" })
	expect(t, open(t, Options{Dir: dir}).Table("t"), "later", "value")
}

// A backup of a damaged directory is none, and neither is a damaged backup.
func TestBackup_Damaged_Refuses(t *testing.T) {
	t.Parallel()
	dir, keys := filled(t, 20)
	file := filepath.Join(t.TempDir(), "file")
	summary := must.Get(Backup(Options{Dir: dir}, file))(t)
	if summary.Records != len(keys) {
		t.Errorf("%+v", summary)
	}
	for _, path := range []string{file, filepath.Join(dir, databaseName)} {
		damageRecord(t, path, keys[7], "key")
	}
	if _, err := Backup(Options{Dir: dir}, file+"2"); !errors.Is(err, ErrCorrupt) {
		t.Errorf("backup: %v", err)
	}
	if _, err := Restore(Options{Dir: t.TempDir()}, file); !errors.Is(err, ErrCorrupt) {
		t.Errorf("restore: %v", err)
	}
}
