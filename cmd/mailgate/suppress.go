package main

import (
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mailgate/mailgate/cmd/mailgate/config"
	"github.com/mailgate/mailgate/mailer/address"
)

type suppressCommand struct {
	Email  string `arg:"" optional:"" help:"Address."`
	Reason string `placeholder:"REASON" enum:",complaint,manual,hard-bounce,not-me" default:"" help:"complaint, manual, hard-bounce or not-me. manual by default; for --import that of rows whose columns do not say."`
	Source string `placeholder:"TEXT" help:"Where it came from, up to 256 bytes. By default the name of the file, for --import."`
	Import string `placeholder:"FILE" help:"A CSV file of addresses; - is the standard input."`
	JSON   bool   `help:"Print the outcome as JSON."`
}

func (suppressCommand) Help() string {
	return `Suppresses an address, so that no email is sent to it. hard-bounce ends after 30 days, not-me after 7; complaint and manual stay until mailgate unsuppress.

	mailgate suppress alice@example.com --source "ticket 4711"
	mailgate suppress --import bounces.csv

--import reads what mailgate suppressions --csv prints, and what SES, SendGrid and Mailgun export. Rows that are no address are counted and left out.` + whichServer
}

// suppressed is the outcome of the commands that change the list.
type suppressed struct {
	Changed int `json:"changed"`
	Invalid int `json:"invalid"` // rows that are no address
}

func (s suppressCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	if (s.Email == "") == (s.Import == "") {
		return &config.Error{Problem: "expected an email address or --import"}
	}
	var done suppressed
	var err error
	if s.Import != "" {
		done, err = s.importFile(ctx, c)
	} else {
		err, done.Changed = changeSuppression(ctx, c, http.MethodPut, s.Email, suppressBody{s.Reason, s.Source}), 1
	}
	if err != nil {
		return err
	}
	return done.print(to, s.JSON, "suppressed")
}

type suppressBody struct {
	Reason string `json:"reason,omitempty"`
	Source string `json:"source"`
}

func changeSuppression(ctx context.Context, c *config.Config, method, email string, body any) error {
	_, err := ask(ctx, operatorRequest(c, method, "/admin/suppressions/"+url.PathEscape(email), body), requestPatience)
	return err
}

func (s suppressed) print(to streams, asJSON bool, what string) (err error) {
	switch {
	case asJSON:
		err = json.NewEncoder(to.out).Encode(s)
	case s.Invalid > 0:
		_, err = fmt.Fprintf(to.out, "%s: %d; rows without a valid address: %d\n", what, s.Changed, s.Invalid)
	default:
		_, err = fmt.Fprintf(to.out, "%s: %d\n", what, s.Changed)
	}
	return err
}

type unsuppressCommand struct {
	Email string `arg:"" help:"Address."`
	JSON  bool   `help:"Print the outcome as JSON."`
}

func (unsuppressCommand) Help() string {
	return `Removes an address and its mailbox from the suppression list, for all reasons.` + whichServer
}

func (u unsuppressCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	if err := changeSuppression(ctx, c, http.MethodDelete, u.Email, nil); err != nil {
		return err
	}
	return suppressed{Changed: 1}.print(to, u.JSON, "not suppressed any more")
}

// importFile suppresses the addresses of a CSV file.
func (s suppressCommand) importFile(ctx context.Context, c *config.Config) (done suppressed, err error) {
	var in io.Reader = os.Stdin
	if s.Import != "-" {
		file, err := os.Open(s.Import)
		if err != nil {
			return done, fmt.Errorf("reading the addresses: %w", err)
		}
		defer file.Close()
		in = file
	}
	rows := csv.NewReader(in)
	rows.FieldsPerRecord, rows.LazyQuotes, rows.TrimLeadingSpace = -1, true, true
	var columns suppressionColumns
	for line := 1; ; line++ {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			if done.Changed == 0 && done.Invalid > 0 {
				return done, &config.Error{Problem: "no row has a valid address: the file must be CSV with commas, in UTF-8"}
			}
			return done, nil
		}
		if err != nil {
			return done, fmt.Errorf("row %d: %w", line, err)
		}
		if line == 1 {
			var headed bool
			if columns, headed = readColumns(row); headed {
				continue
			}
		}
		email, reason := columns.of(row)
		reason = cmp.Or(reason, s.Reason)
		if _, err := address.Parse(email, address.Identity{}); err != nil {
			done.Invalid++
			continue
		}
		if reason == "" {
			return done, &config.Error{Problem: fmt.Sprintf("row %d, after %d were suppressed, does not say why it is: add --reason", line, done.Changed)}
		}
		if err := changeSuppression(ctx, c, http.MethodPut, email, suppressBody{reason, cmp.Or(s.Source, filepath.Base(s.Import))}); err != nil {
			return done, fmt.Errorf("row %d, after %d were suppressed: %w", line, done.Changed, err)
		}
		done.Changed++
	}
}

// suppressionColumns say where a file has what.
type suppressionColumns struct {
	email, reason int    // -1: nowhere
	all           string // the reason of all rows, or ""
}

// readColumns reads the first row, and reports whether it has the names of columns. The list of bounces of a
// provider is told by its columns, and a list of complaints by the address that they came from.
func readColumns(row []string) (c suppressionColumns, headed bool) {
	row[0] = strings.TrimPrefix(row[0], "\ufeff")
	if i := slices.IndexFunc(row, func(cell string) bool { return strings.Contains(cell, "@") }); i >= 0 {
		return suppressionColumns{email: i, reason: i + 1}, false
	}
	named := func(names ...string) int {
		return slices.IndexFunc(row, func(cell string) bool { return slices.Contains(names, strings.ToLower(strings.TrimSpace(cell))) })
	}
	c = suppressionColumns{email: named("email", "address", "email address", "emailaddress", "recipient"), reason: named("reason", "suppression reason")}
	if named("code", "error", "status") >= 0 {
		c.all = "hard-bounce"
	} else if named("ip") >= 0 {
		c.all = "complaint"
	}
	return c, true
}

// reasonWords are what a file calls the reasons.
var reasonWords = map[string]string{"bounce": "hard-bounce", "hard-bounce": "hard-bounce", "complaint": "complaint", "manual": "manual", "not-me": "not-me"}

// of returns the address of a row, and the reason if it is known. The reason of some providers is a sentence.
func (c suppressionColumns) of(row []string) (email, reason string) {
	cell := func(i int) string {
		if i < 0 || i >= len(row) {
			return ""
		}
		return strings.TrimSpace(row[i])
	}
	return active(cell(c.email)), cmp.Or(reasonWords[strings.ToLower(cell(c.reason))], c.all)
}

// formula begins a cell that a spreadsheet runs.
const formula = "=+-@\t\r'"

// inert puts a quotation mark before what a spreadsheet would run, and active removes it.
func inert(cell string) string {
	if cell != "" && strings.ContainsRune(formula, rune(cell[0])) {
		return "'" + cell
	}
	return cell
}

func active(cell string) string {
	if rest, quoted := strings.CutPrefix(cell, "'"); quoted && rest != "" && strings.ContainsRune(formula, rune(rest[0])) {
		return rest
	}
	return cell
}

type suppressionsCommand struct {
	CSV  bool `help:"Print a CSV file, for suppress --import." xor:"form"`
	JSON bool `help:"Print each entry as JSON, one a line." xor:"form"`
}

func (suppressionsCommand) Help() string {
	return `Prints the suppression list, in no particular order.` + whichServer
}

// listed is an entry of the list.
type listed struct {
	Email  string  `json:"email"`
	Reason string  `json:"reason"`
	Until  *string `json:"until"`
	Source string  `json:"source"`
	Since  string  `json:"since"`
}

func (s suppressionsCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	write, flush := s.writer(to.out)
	for after := ""; ; {
		body, err := ask(ctx, operatorRequest(c, http.MethodGet, "/admin/suppressions?after="+url.QueryEscape(after), nil), requestPatience)
		if err != nil {
			return err
		}
		var page struct {
			Suppressions []listed
			Next         string
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return fmt.Errorf("the answer is not mailgate's: %w", err)
		}
		for _, e := range page.Suppressions {
			if err := write(e); err != nil {
				return fmt.Errorf("printing the list: %w", err)
			}
		}
		if after = page.Next; after == "" {
			return flush()
		}
	}
}

// writer returns what prints an entry, and what ends the list.
func (s suppressionsCommand) writer(out io.Writer) (write func(listed) error, flush func() error) {
	cells := func(e listed) []string {
		until := ""
		if e.Until != nil {
			until = *e.Until
		}
		return []string{e.Email, e.Reason, until, e.Since, e.Source}
	}
	head := []string{"email", "reason", "until", "since", "source"}
	if s.JSON {
		encoder := json.NewEncoder(out)
		return func(e listed) error { return encoder.Encode(e) }, func() error { return nil }
	}
	if s.CSV {
		file := csv.NewWriter(out)
		err := file.Write(head)
		return func(e listed) error {
				e.Email, e.Source = inert(e.Email), inert(e.Source)
				return errors.Join(err, file.Write(cells(e)))
			}, func() error {
				file.Flush()
				return file.Error()
			}
	}
	table := columns(out)
	fmt.Fprintln(table, strings.ToUpper(strings.Join(head, "\t")))
	return func(e listed) error {
		_, err := fmt.Fprintln(table, strings.Join(cells(e), "\t"))
		return err
	}, table.Flush
}
