package local_test

import (
	"context"
	"encoding/binary"
	"fmt"
	"os"
	"strconv"
	"testing"

	"github.com/mailgate/mailgate/cache"
	"github.com/mailgate/mailgate/servertest"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/local"
)

// A process that adds codes and uses every other of them up is killed: what it had
// acknowledged as added is right, and what it had acknowledged as right is gone.
func TestKilledProcess(t *testing.T) {
	if dir := servertest.ChildDir(); dir != "" {
		workUntilKilled(t, dir)
	}
	dir := t.TempDir()
	for round, enough := range []int{1, 150, 1201} {
		added, used := killAt(t, dir, round, enough)
		if added < enough/2 {
			t.Fatalf("round %d: killed when %d were added", round, added)
		}
		book, closing := reopen(t, dir)
		for n := range added {
			want := verify.Correct
			if n < used && n%2 == 1 {
				want = verify.Expired
			}
			if n >= used && n%2 == 1 {
				continue // may have been used before the kill, or not
			}
			if result, err := book.Check(context.Background(), mailbox(round, n), numbered(n)); result != want || err != nil {
				t.Fatalf("round %d, code %d of %d: %v, %v; want %v", round, n, added, result, err, want)
			}
		}
		closing()
	}
}

// killAt kills the child after so many lines, and says how many codes it had added then,
// and up to which it had used every other.
func killAt(t *testing.T, dir string, round, enough int) (added, used int) {
	t.Helper()
	child := servertest.Child(t, dir)
	child.Env = append(child.Env, roundEnv+"="+strconv.Itoa(round))
	servertest.KillAfter(t, child, enough, func(line string) bool {
		var what string
		var number int
		_, err := fmt.Sscanf(line, "%s %d", &what, &number)
		switch {
		case err == nil && what == "added":
			added = number + 1
		case err == nil && what == "used":
			used = number + 1
		default:
			return false
		}
		return true
	})
	return added, used
}

const roundEnv = "MAILGATE_TEST_ROUND"

// workUntilKilled is the child: it prints what it has done.
func workUntilKilled(t *testing.T, dir string) {
	round, err := strconv.Atoi(os.Getenv(roundEnv))
	if err != nil {
		t.Fatal(err)
	}
	book, _ := reopen(t, dir)
	ctx := context.Background()
	for n := 0; ; n++ {
		if err := book.Add(ctx, mailbox(round, n), numbered(n), verify.MaxLifetime); err != nil {
			t.Fatal(err)
		}
		fmt.Printf("added %d\n", n)
		if n%2 == 0 {
			continue
		}
		if result, err := book.Check(ctx, mailbox(round, n), numbered(n)); result != verify.Correct || err != nil {
			t.Fatal(result, err)
		}
		fmt.Printf("used %d\n", n)
	}
}

func reopen(t *testing.T, dir string) (book *local.Book, closing func()) {
	t.Helper()
	disk, err := cache.Open(cache.DiskOptions{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	book, err = local.New(disk, local.Options{Size: small, Now: func() int64 { return noon }})
	if err != nil {
		t.Fatal(err)
	}
	return book, func() {
		book.Close()
		if err := disk.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

func mailbox(round, n int) string { return fmt.Sprintf("user%d@%d.example.com", n, round) }

func numbered(n int) (h verify.Hash) {
	binary.BigEndian.PutUint64(h[:], uint64(n))
	return h
}
