package cluster_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/mailgate/mailgate/redisstore"
	"github.com/mailgate/mailgate/redisstore/redistest"
	throttlecluster "github.com/mailgate/mailgate/throttle/cluster"
	"github.com/mailgate/mailgate/verify"
	"github.com/mailgate/mailgate/verify/cluster"
)

// TestMain lets the test binary be one of the processes that race.
func TestMain(m *testing.M) { redistest.Main(m, work) }

// A worker reads mailboxes and codes, and for each lets 64 type it at its desk at once.
// It writes how many were told what.
func work(url string) error {
	desk, closing, err := openDesk(url)
	if err != nil {
		return err
	}
	defer closing()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		mailbox, code, _ := strings.Cut(lines.Text(), " ")
		counts, err := typedAtOnce(desk, mailbox, code)
		if err != nil {
			return err
		}
		fmt.Println(counts[verify.Correct], counts[verify.Incorrect], counts[verify.Spent], counts[verify.Expired])
	}
	return nil
}

func openDesk(url string) (*verify.Desk, func() error, error) {
	store, err := redisstore.Open(redisstore.Options{URL: url, Timeout: patient})
	if err != nil {
		return nil, nil, err
	}
	guesses, err := throttlecluster.New(store, verify.DefaultGuesses())
	if err != nil {
		return nil, nil, err
	}
	hasher, err := verify.NewHasher([]byte("sixteen bytes of chance, or more"))
	if err != nil {
		return nil, nil, err
	}
	desk, err := verify.NewDesk(verify.Options{Hasher: hasher, Book: cluster.New(store), Guesses: guesses.Tiers("guesses", verify.DefaultGuesses())})
	return desk, store.Close, err
}

func typedAtOnce(desk *verify.Desk, mailbox, code string) (counts map[verify.Result]int, err error) {
	var done sync.WaitGroup
	var mu sync.Mutex
	counts = map[verify.Result]int{}
	for range racers {
		done.Go(func() {
			o, failed := desk.Verify(context.Background(), verify.Recipient{Mailbox: mailbox, Address: mailbox}, code)
			mu.Lock()
			defer mu.Unlock()
			if failed != nil {
				err = failed
			}
			counts[o.Result]++
		})
	}
	done.Wait()
	return counts, err
}

func counts(t *testing.T, w *redistest.Worker) map[verify.Result]int {
	t.Helper()
	var correct, incorrect, spent, expired int
	if _, err := fmt.Sscan(w.Answer(), &correct, &incorrect, &spent, &expired); err != nil {
		t.Fatal(err)
	}
	return map[verify.Result]int{verify.Correct: correct, verify.Incorrect: incorrect, verify.Spent: spent, verify.Expired: expired}
}

// Three processes, 64 at each desk, one mailbox: a wrong code is looked at five times,
// and a right one is right once.
func TestThreeProcessesOneMailbox(t *testing.T) {
	t.Parallel()
	url := redistest.Alone(t).URL()
	desk, closing, err := openDesk(url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closing() })
	workers := redistest.StartWorkers(t, url, 3)
	guess := func(mailbox, code string) map[verify.Result]int {
		total := map[verify.Result]int{}
		for _, w := range workers {
			w.Order(mailbox, code)
		}
		for _, w := range workers {
			for result, n := range counts(t, w) {
				total[result] += n
			}
		}
		return total
	}
	for round := range 40 {
		mailbox := fmt.Sprint("processes-", round)
		code, err := desk.Issue(context.Background(), verify.Recipient{Mailbox: mailbox, Address: mailbox})
		if err != nil {
			t.Fatal(err)
		}
		if round%2 == 0 {
			wrong := "0" + code[1:]
			if wrong == code {
				wrong = "1" + code[1:]
			}
			if got := guess(mailbox, wrong); got[verify.Incorrect] != 5 || got[verify.Spent] != 3*racers-5 {
				t.Fatalf("round %d, a wrong code: %v", round, got)
			}
		} else if got := guess(mailbox, code); got[verify.Correct] != 1 || got[verify.Incorrect] != 0 {
			t.Fatalf("round %d, the right code: %v", round, got)
		}
	}
}
