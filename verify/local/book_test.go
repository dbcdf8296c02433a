package local_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/cache/cachetest"
	throttlelocal "github.com/mailgate/mailgate/throttle/local"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/local"
)

// noon is where the clocks of these tests stand.
const noon = int64(1_800_000_000_000)

var alice = verify.Recipient{Mailbox: "alice@example.com", Address: "Alice@example.com"}

func TestOptionsThatWillNotDo(t *testing.T) {
	disk := cachetest.Open(t, cache.Memory)
	for name, o := range map[string]local.Options{
		"half a size":  {Size: cache.Size{Entries: 1}},
		"a NUL inside": {Name: "a\x00b"},
	} {
		t.Run(name, func(t *testing.T) {
			if b, err := local.New(disk, o); err == nil {
				b.Close()
				t.Fatal("opened")
			}
		})
	}
	openBook(t, disk, local.Options{})
	if _, err := local.New(disk, local.Options{}); err == nil {
		t.Error("a second book of the same name was opened")
	}
}

// After Close, and after the disk was closed, each call is unavailable and says why; it
// names neither the mailbox nor the hash.
func TestClosed(t *testing.T) {
	hash := verify.Hash([]byte("a hash of a code"))
	for name, closing := range map[string]func(*local.Book, *cache.Disk) error{
		"book": func(b *local.Book, _ *cache.Disk) error { b.Close(); return nil },
		"disk": func(_ *local.Book, d *cache.Disk) error { return d.Close() },
	} {
		t.Run(name, func(t *testing.T) {
			disk := cachetest.Open(t, cache.Memory)
			book := openBook(t, disk, local.Options{})
			ctx := context.Background()
			// This is remembered, whatever the disk says.
			if err := book.Add(ctx, alice.Mailbox, hash, verify.DefaultLifetime); err != nil {
				t.Fatal(err)
			}
			if err := closing(book, disk); err != nil {
				t.Fatal(err)
			}
			result, checked := book.Check(ctx, alice.Mailbox, hash)
			if result == verify.Correct {
				t.Error("correct")
			}
			for call, err := range map[string]error{
				"check":  checked,
				"add":    book.Add(ctx, alice.Mailbox, hash, 1000),
				"remove": book.Remove(ctx, alice.Mailbox, hash),
				"forget": book.Forget(ctx, alice.Mailbox),
				"ready":  book.Ready(ctx),
			} {
				if !errors.Is(err, verify.ErrUnavailable) || !errors.Is(err, cache.ErrClosed) {
					t.Errorf("%s: %v", call, err)
				}
				for _, secret := range []string{"alice", string(hash[:]), hex.EncodeToString(hash[:]), fmt.Sprint(hash)} {
					if strings.Contains(strings.ToLower(err.Error()), secret) {
						t.Errorf("%s says too much: %v", call, err)
					}
				}
			}
		})
	}
}

// The machine's clock is the default, and readiness is asked of the disk.
func TestDefaults(t *testing.T) {
	book := openBook(t, cachetest.Open(t, cache.Memory), local.Options{})
	ctx := context.Background()
	if err := book.Ready(ctx); err != nil {
		t.Error(err)
	}
	if err := book.Add(ctx, "a", verify.Hash{1}, verify.MaxLifetime); err != nil {
		t.Fatal(err)
	}
	if result, err := book.Check(ctx, "a", verify.Hash{1}); result != verify.Correct || err != nil {
		t.Errorf("%v, %v", result, err)
	}
}

// A desk closes and opens again: codes that were mailed are right, a code that was used
// stays used, and guesses that were spent stay spent.
func TestARestartForgetsNothing(t *testing.T) {
	dir, ctx := t.TempDir(), context.Background()
	bob := verify.Recipient{Mailbox: "bob@example.com", Address: "bob@example.com"}
	desk, closing := openDesk(t, dir)
	first, used := issue(t, desk, alice), issue(t, desk, bob)
	wrong := another(first)
	for _, step := range []struct {
		who   verify.Recipient
		typed string
		want  verify.Result
	}{
		{bob, used, verify.Correct},
		{alice, wrong, verify.Incorrect},
		{alice, wrong, verify.Incorrect},
		{alice, wrong, verify.Incorrect},
		{alice, wrong, verify.Incorrect},
	} {
		if o, err := desk.Verify(ctx, step.who, step.typed); o.Result != step.want || err != nil {
			t.Fatalf("%v, %v; want %v", o.Result, err, step.want)
		}
	}
	closing()

	desk, closing = openDesk(t, dir)
	defer closing()
	second := issue(t, desk, alice)
	if o, err := desk.Verify(ctx, bob, used); o.Result != verify.Expired || err != nil {
		t.Errorf("a code that was used: %v, %v", o.Result, err)
	}
	if o, err := desk.Verify(ctx, alice, first); o.Result != verify.Correct || err != nil {
		t.Errorf("the last guess, with a code from before: %v, %v", o.Result, err)
	}
	if o, err := desk.Verify(ctx, alice, second); o.Result != verify.Expired || err != nil {
		t.Errorf("the other code: %v, %v", o.Result, err)
	}
	third := issue(t, desk, alice)
	if o, err := desk.Verify(ctx, alice, another(third)); o.Result != verify.Incorrect || o.AttemptsLeft != 0 || err != nil {
		t.Errorf("the fifth wrong guess: %v, %d left, %v", o.Result, o.AttemptsLeft, err)
	}
	if o, err := desk.Verify(ctx, alice, third); o.Result != verify.Spent || err != nil {
		t.Errorf("the sixth guess: %v, %v", o.Result, err)
	}
}

// Of a code nothing is on disk, neither itself nor a plain hash of it.
func TestTheDiskHasNoCode(t *testing.T) {
	dir := t.TempDir()
	desk, closing := openDesk(t, dir)
	code := issue(t, desk, alice)
	closing()
	var files []byte
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := fs.ReadFile(os.DirFS(dir), path)
		files = append(files, content...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Contains(files, []byte(alice.Mailbox)) {
		t.Fatal("the disk has not even the mailbox: nothing was looked at")
	}
	plain := sha256.Sum256([]byte(code))
	for _, secret := range []string{code, string(plain[:8]), deskSecret} {
		if bytes.Contains(files, []byte(secret)) {
			t.Error("a secret is on disk")
		}
	}
}

const deskSecret = "sixteen bytes of chance, or more"

func openDesk(t *testing.T, dir string) (desk *verify.Desk, closing func()) {
	t.Helper()
	disk, err := cache.Open(cache.DiskOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	now := func() int64 { return noon }
	book, err := local.New(disk, local.Options{Now: now})
	if err != nil {
		t.Fatal(err)
	}
	guesses, err := throttlelocal.New(disk, throttlelocal.Options{Policy: verify.DefaultGuesses(), Name: "guesses", Now: now})
	if err != nil {
		t.Fatal(err)
	}
	hasher, err := verify.NewHasher([]byte(deskSecret))
	if err != nil {
		t.Fatal(err)
	}
	desk, err = verify.NewDesk(verify.Options{Hasher: hasher, Book: book, Guesses: guesses})
	if err != nil {
		t.Fatal(err)
	}
	return desk, func() {
		book.Close()
		guesses.Close()
		if err := disk.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func issue(t *testing.T, desk *verify.Desk, to verify.Recipient) string {
	t.Helper()
	code, err := desk.Issue(context.Background(), to)
	if err != nil {
		t.Fatal(err)
	}
	return code
}

// another is a code that this one is not.
func another(code string) string {
	if code[0] == '9' {
		return "0" + code[1:]
	}
	return string(code[0]+1) + code[1:]
}
