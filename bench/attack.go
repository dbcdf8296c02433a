package main

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

var picture = flag.String("picture", "", "attack: draw the result into this `file`")

// The attack: one email to each of so many strangers, beside people who sign up.
const (
	strangers  = 10_000
	people     = 200
	everySoOft = strangers / people // strangers between two people
)

// attackers are from how many addresses the strangers are mailed.
var attackers = []int64{1, 50, 5_000}

// defence is the rules that an attack meets.
type defence struct {
	name  string
	rules string
}

const (
	withoutClientIP = "\n- {name: client-ip, off: true}"
	byClientIP      = "\n- {name: unproven, by: client_ip, counts: unverified, limit: floor=10/24h, ratio: 0.3}"
	byAll           = "\n- {name: everybody, by: all, counts: unverified, limit: floor=50/24h, ratio: 0.3, then: challenge}"
)

var defences = []defence{
	{"tiers only", "rules:" + withoutClientIP},
	{"and `client-ip`, as by default", "rules: []"},
	{"and a budget by `client_ip`", "rules:" + byClientIP},
	{"and one by `all`, with a challenge", "rules:" + byClientIP + byAll},
}

// result is what an attack came to.
type result struct {
	mailed atomic.Int64 // strangers
	served atomic.Int64 // people who got their code and entered it
	solved atomic.Int64 // people who were asked for a challenge
	took   time.Duration
}

// attacks replays the attack from each number of addresses against each defence, prints a table and draws it. The row is
// about the people.
func attacks(b *bench) []row {
	results := make([][]*result, len(attackers))
	fewest := float64(people)
	for i, addresses := range attackers {
		for _, d := range defences {
			r := b.attack(addresses, d)
			fewest = min(fewest, float64(r.served.Load()))
			results[i] = append(results[i], r)
			b.close()
		}
	}
	printAttacks(results)
	if *picture != "" {
		check(os.WriteFile(*picture, []byte(drawAttacks(results)), 0o644))
	}
	return []row{compareFixed("people who got their code in an attack", "people", "of all", []float64{fewest}, people, atLeast(1))}
}

// attack sends to the strangers as fast as answers come, and has one of the people sign up after every so many.
func (b *bench) attack(addresses int64, d defence) *result {
	relay := b.openSink()
	relay.codes = newCodes()
	file := filepath.Join(b.dir, "rules.yaml")
	check(os.WriteFile(file, []byte(d.rules+"\n"), 0o600))
	data, _ := b.newDataDir()
	ours := b.startMailgate(relay.addr, data, "MAILGATE_RULES="+file, "MAILGATE_LOG_LEVEL=warn")
	r := new(result)
	load := b.openConnections(ours.addr, senders, func(c *connection, n int64) error {
		if n%(everySoOft+1) == everySoOft {
			return r.signUp(c, relay, n)
		}
		return r.mailStranger(c, addresses, n)
	})
	began := time.Now()
	load.send(strangers + people)
	r.took = time.Since(began)
	if taken := relay.mails.Load(); taken != r.mailed.Load()+r.served.Load() {
		check(fmt.Errorf("the relay took %d emails, and %d strangers and %d people got one", taken, r.mailed.Load(), r.served.Load()))
	}
	return r
}

// mailStranger is one request of the attack.
func (r *result) mailStranger(c *connection, addresses, n int64) error {
	visitor := n % addresses
	body := fmt.Sprintf(`{"email":"stranger%d@mail.example","client_ip":"11.0.%d.%d"}`, n, visitor/250, visitor%250+1)
	switch status, err := c.exchange("/send-code", body); {
	case err != nil:
		return err
	case status == http.StatusOK:
		r.mailed.Add(1)
	case status != http.StatusTooManyRequests && status != http.StatusForbidden:
		return fmt.Errorf("a stranger: status %d: %s", status, c.answer.Body())
	}
	return nil
}

// signUp is a person, at an address of their own, who enters the code that came.
func (r *result) signUp(c *connection, relay *sink, n int64) error {
	email, more := fmt.Sprintf("person%d@home.example", n), fmt.Sprintf(`,"client_ip":"12.0.%d.%d"`, n/250, n%250+1)
	status, err := c.exchange("/send-code", `{"email":"`+email+`"`+more+`}`)
	if err == nil && status == http.StatusForbidden {
		var token string
		if token, err = solve(c.answer.Body()); err == nil {
			r.solved.Add(1)
			status, err = c.exchange("/send-code", `{"email":"`+email+`"`+more+`,"challenge":"`+token+`"}`)
		}
	}
	if err == nil && status == http.StatusOK {
		status, err = c.exchange("/verify-code", `{"email":"`+email+`","code":"`+relay.codes.of(email)+`"}`)
	}
	if err == nil && status == http.StatusOK {
		r.served.Add(1)
	}
	return err
}

// exchange posts a body and returns the status of the answer.
func (c *connection) exchange(path, body string) (status int, err error) {
	if err := c.SetDeadline(time.Now().Add(patience)); err != nil {
		return 0, err
	}
	if _, err := c.Write([]byte(post(path, func(int64) string { return body })(0))); err != nil {
		return 0, err
	}
	err = c.answer.Read(c.in)
	return c.answer.StatusCode(), err
}

// solve returns the token of the proof of work that a 403 offers.
func solve(problem []byte) (token string, err error) {
	var asked struct {
		Challenge struct {
			ALTCHA struct {
				Algorithm string `json:"algorithm"`
				Challenge string `json:"challenge"`
				Salt      string `json:"salt"`
				Signature string `json:"signature"`
				Number    int    `json:"number"`
				MaxNumber int    `json:"maxnumber"`
			} `json:"altcha"`
		} `json:"challenge"`
	}
	if err := json.Unmarshal(problem, &asked); err != nil {
		return "", err
	}
	of := &asked.Challenge.ALTCHA
	for of.Number = 0; of.Number <= of.MaxNumber; of.Number++ {
		if sum := sha256.Sum256([]byte(of.Salt + strconv.Itoa(of.Number))); hex.EncodeToString(sum[:]) == of.Challenge {
			text, err := json.Marshal(of)
			return base64.StdEncoding.EncodeToString(text), err
		}
	}
	return "", fmt.Errorf("no number solves %s", problem)
}

func printAttacks(results [][]*result) {
	fmt.Printf("Strangers who got an email, of %d; people who got and entered their code, of %d; those of them who were asked for a challenge; seconds\n\n| from |", strangers, people)
	for _, d := range defences {
		fmt.Printf(" %s |", d.name)
	}
	fmt.Printf("\n|---|%s\n", strings.Repeat("---|", len(defences)))
	for i, addresses := range attackers {
		fmt.Printf("| %d |", addresses)
		for _, r := range results[i] {
			fmt.Printf(" **%d**; %d; %d; %.1f |", r.mailed.Load(), r.served.Load(), r.solved.Load(), r.took.Seconds())
		}
		fmt.Println()
	}
	fmt.Println()
}
