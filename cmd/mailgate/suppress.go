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

--import reads what mailgate suppressions --csv prints, and what SES, SendGrid and Mailgun export. Rows without a valid address are counted and left out; so are, unless you give --reason, those whose status or code is of a temporary failure (4…), and those of a list with a column status, such as SendGrid's bounces and blocks, whose status is not that of an unknown address. A file with a mistake changes nothing.` + whichServer
}

// suppressed is the outcome of the commands that change the list.
type suppressed struct {
	Changed int `json:"changed"`
	Invalid int `json:"invalid"` // rows that were left out
}

func (s suppressCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	if (s.Email == "") == (s.Import == "") {
		return &config.Error{Problem: "expected an email address or --import"}
	}
	rows, done, err := []listed{{Email: s.Email, Reason: s.Reason}}, suppressed{}, error(nil)
	if s.Import != "" {
		if rows, done.Invalid, err = s.readFile(); err != nil {
			return err
		}
		s.Source = cmp.Or(s.Source, filepath.Base(s.Import))
	}
	for _, row := range rows {
		if err := changeSuppression(ctx, c, http.MethodPut, row.Email, suppressBody{row.Reason, s.Source}); err != nil {
			return fmt.Errorf("after %d of %d were suppressed: %w", done.Changed, len(rows), err)
		}
		done.Changed++
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

func look(ctx context.Context, c *config.Config, path string, into any) error {
	body, err := ask(ctx, operatorRequest(c, http.MethodGet, path, nil), requestPatience)
	if err == nil && json.Unmarshal(body, into) != nil {
		err = errors.New("the answer is not mailgate's")
	}
	return err
}

func (s suppressed) print(to streams, asJSON bool, what string) error {
	if asJSON {
		return json.NewEncoder(to.out).Encode(s)
	}
	if what = fmt.Sprintf("%s: %d", what, s.Changed); s.Invalid > 0 {
		what += fmt.Sprintf("; rows left out: %d", s.Invalid)
	}
	_, err := fmt.Fprintln(to.out, what)
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
	var before adminAnswer
	if err := look(ctx, c, "/admin/mailboxes/"+url.PathEscape(u.Email), &before); err != nil {
		return err
	}
	// Also what is not on the list at this node may have come onto it at another.
	if err := changeSuppression(ctx, c, http.MethodDelete, u.Email, nil); err != nil {
		return err
	}
	return suppressed{Changed: min(len(before.Suppressions), 1)}.print(to, u.JSON, "removed from the list")
}

// readFile reads the rows of a CSV file, and counts those to be left out. A file with a mistake has none.
func (s suppressCommand) readFile() (rows []listed, leftOut int, err error) {
	in := os.Stdin
	if s.Import != "-" {
		if in, err = os.Open(s.Import); err != nil {
			return nil, 0, fmt.Errorf("reading the addresses: %w", err)
		}
		defer in.Close()
	}
	file := csv.NewReader(in)
	file.FieldsPerRecord, file.TrimLeadingSpace = -1, true
	cells, err := file.ReadAll()
	if err != nil {
		return nil, 0, &config.Error{Problem: "the file is not CSV: " + err.Error()}
	}
	var columns suppressionColumns
	for i, row := range cells {
		if i == 0 {
			var headed bool
			if columns, headed = readColumns(row); headed {
				continue
			}
		}
		email, reason := columns.of(row)
		reason = cmp.Or(reason, s.Reason)
		switch _, err := address.Parse(email, address.Identity{}); {
		case err != nil, reason == "" && columns.status >= 0:
			leftOut++
		case reason == "":
			return nil, 0, &config.Error{Problem: fmt.Sprintf("row %d does not say why it is: add --reason", i+1)}
		default:
			rows = append(rows, listed{Email: email, Reason: reason})
		}
	}
	if len(rows) == 0 && leftOut > 0 && columns.status < 0 {
		return nil, 0, &config.Error{Problem: "no row has a valid address: the file must be CSV with commas, in UTF-8"}
	}
	return rows, leftOut, nil
}

// suppressionColumns say where a file has what.
type suppressionColumns struct {
	email, reason, status int    // -1: nowhere
	all                   string // the reason of all rows, or ""
}

// readColumns reads the first row, and reports whether it has the names of columns; without them an address comes
// first. Mailgun's list of bounces is told by its columns, and a list of complaints by the address that they came
// from.
func readColumns(row []string) (c suppressionColumns, headed bool) {
	row[0] = strings.TrimPrefix(row[0], "\ufeff")
	if strings.Contains(row[0], "@") {
		return suppressionColumns{email: 0, reason: 1, status: -1}, false
	}
	named := func(names ...string) int {
		return slices.IndexFunc(row, func(cell string) bool { return slices.Contains(names, strings.ToLower(strings.TrimSpace(cell))) })
	}
	c = suppressionColumns{email: named("email", "address", "email address", "emailaddress", "recipient"), reason: named("reason", "suppression reason"), status: named("status", "code")}
	if named("code", "error") >= 0 {
		c.all = "hard-bounce"
	} else if named("ip") >= 0 {
		c.all = "complaint"
	}
	return c, true
}

// reasonWords are what a file calls the reasons.
var reasonWords = map[string]string{"bounce": "hard-bounce", "hard-bounce": "hard-bounce", "complaint": "complaint", "manual": "manual", "not-me": "not-me"}

// unknownStatuses say that there is no such address. SendGrid's blocks have the columns of its bounces, and other ones.
var unknownStatuses = []string{"5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10"}

// of returns the address of a row, and the reason if it is known. The reason of some providers is a sentence.
func (c suppressionColumns) of(row []string) (email, reason string) {
	cell := func(i int) string {
		if i < 0 || i >= len(row) {
			return ""
		}
		return strings.TrimSpace(row[i])
	}
	if slices.Contains(unknownStatuses, cell(c.status)) {
		c.all = "hard-bounce"
	}
	if strings.HasPrefix(cell(c.status), "4") { // a temporary failure, whatever the list calls it
		return active(cell(c.email)), ""
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

func (e listed) until() string {
	if e.Until == nil {
		return ""
	}
	return *e.Until
}

func (s suppressionsCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	write, flush := s.writer(to.out)
	for after := ""; ; {
		var page struct {
			Suppressions []listed
			Next         string
		}
		if err := look(ctx, c, "/admin/suppressions?after="+url.QueryEscape(after), &page); err != nil {
			return err
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
	if s.JSON {
		encoder := json.NewEncoder(out)
		return func(e listed) error { return encoder.Encode(e) }, func() error { return nil }
	}
	head := []string{"email", "reason", "until", "since", "source"}
	cells := func(e listed) []string { return []string{e.Email, e.Reason, e.until(), e.Since, e.Source} }
	if s.CSV {
		file := csv.NewWriter(out)
		_ = file.Write(head) // Error has what fails
		return func(e listed) error {
				e.Email, e.Source = inert(e.Email), inert(e.Source)
				return file.Write(cells(e))
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
