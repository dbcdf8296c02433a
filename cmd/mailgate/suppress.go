package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
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
	Reason string `placeholder:"REASON" enum:",complaint,manual,hard-bounce,not-me" default:"" help:"complaint, manual, hard-bounce or not-me. manual by default; needed with --import."`
	Source string `placeholder:"TEXT" help:"Where it came from, up to 256 bytes. By default the name of the file, for --import."`
	Import string `placeholder:"FILE" help:"A CSV file of addresses; - is the standard input."`
	JSON   bool   `help:"Print the outcome as JSON."`
}

func (suppressCommand) Help() string {
	return `Suppresses an address, so that no email is sent to it. hard-bounce ends after 30 days, not-me after 7; complaint and manual stay until mailgate unsuppress.

	mailgate suppress alice@example.com --source "ticket 4711"
	mailgate suppress --import bounces.csv --reason hard-bounce

--import takes the addresses in the column email of a file, or in the first one if none has that name, all for the --reason. Rows without a valid address are counted and left out. A file with a mistake changes nothing.` + whichServer
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
	all, done, err := []string{s.Email}, suppressed{}, error(nil)
	if s.Import != "" {
		if s.Reason == "" {
			return &config.Error{Problem: "--import needs a --reason, for all addresses of the file"}
		}
		if all, done.Invalid, err = s.readFile(); err != nil {
			return err
		}
		s.Source = cmp.Or(s.Source, filepath.Base(s.Import))
	}
	for _, email := range all {
		r := operatorRequest(c, http.MethodPut, "/admin/suppressions/"+url.PathEscape(email), suppressBody{s.Reason, s.Source})
		if _, err := ask(ctx, r, nil); err != nil {
			return fmt.Errorf("after %d of %d were suppressed: %w", done.Changed, len(all), err)
		}
		done.Changed++
	}
	return done.print(to, s.JSON, "suppressed")
}

type suppressBody struct {
	Reason string `json:"reason,omitempty"`
	Source string `json:"source"`
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
	if _, err := ask(ctx, operatorRequest(c, http.MethodGet, "/admin/mailboxes/"+url.PathEscape(u.Email), nil), &before); err != nil {
		return err
	}
	// Also what is not on the list at this node may have come onto it at another.
	if _, err := ask(ctx, operatorRequest(c, http.MethodDelete, "/admin/suppressions/"+url.PathEscape(u.Email), nil), nil); err != nil {
		return err
	}
	return suppressed{Changed: min(len(before.Suppressions), 1)}.print(to, u.JSON, "removed from the list")
}

// byteOrderMark is what spreadsheets begin a file in UTF-8 with.
const byteOrderMark = "\ufeff"

// readFile reads the addresses of a CSV file, and counts the rows without one. A file with a mistake has none.
func (s suppressCommand) readFile() (all []string, leftOut int, err error) {
	in := os.Stdin
	if s.Import != "-" {
		if in, err = os.Open(s.Import); err != nil {
			return nil, 0, fmt.Errorf("reading the addresses: %w", err)
		}
		defer in.Close()
	}
	text := bufio.NewReader(in)
	if mark, _ := text.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = text.Discard(len(mark)) // which Peek has read
	}
	file := csv.NewReader(text)
	file.FieldsPerRecord, file.TrimLeadingSpace = -1, true
	rows, err := file.ReadAll()
	if err != nil {
		return nil, 0, &config.Error{Problem: "the file is not CSV: " + err.Error()}
	}
	column := 0
	if len(rows) > 0 {
		head := rows[0]
		if strings.Contains(strings.Join(head, ""), "\r") {
			return nil, 0, &config.Error{Problem: "the lines of the file end with CR alone: save it with LF or CRLF"}
		}
		named := slices.IndexFunc(head, func(cell string) bool { return strings.EqualFold(strings.TrimSpace(cell), "email") })
		if column = max(named, 0); named >= 0 || !strings.Contains(head[0], "@") {
			rows = rows[1:]
		}
		if named < 0 && len(rows) == 0 {
			return nil, 0, &config.Error{Problem: "the file has no address, and no column is named email"}
		}
	}
	for _, row := range rows {
		email := ""
		if column < len(row) {
			email = active(strings.TrimSpace(row[column]))
		}
		if _, err := address.Parse(email, address.Identity{}); err != nil {
			leftOut++
		} else {
			all = append(all, email)
		}
	}
	if len(all) == 0 && leftOut > 0 {
		return nil, 0, &config.Error{Problem: "no row has a valid address in its column email, or else in its first: the file must be CSV with commas, in UTF-8"}
	}
	return all, leftOut, nil
}

// formula begins a cell that a spreadsheet runs.
const formula = "=+-@\t\r'"

// csvSafe puts a quotation mark before what a spreadsheet would run, and active removes it.
func csvSafe(cell string) string {
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
	CSV  bool `help:"Print a CSV file." xor:"form"`
	JSON bool `help:"Print each entry as JSON, one a line." xor:"form"`
}

func (suppressionsCommand) Help() string {
	return `Prints the suppression list, in no particular order.` + whichServer
}

// listed is an entry of the list. Until is empty for one that stays.
type listed struct{ Email, Reason, Until, Since, Source string }

func (s suppressionsCommand) Run(ctx context.Context, c *config.Config, to streams) error {
	file, table := csv.NewWriter(to.out), columns(to.out)
	head := []string{"email", "reason", "until", "since", "source"}
	switch {
	case s.CSV:
		_ = file.Write(head) // Error has what fails
	case !s.JSON:
		fmt.Fprintln(table, strings.ToUpper(strings.Join(head, "\t"))) // Flush has it
	}
	for after := ""; ; {
		var page struct {
			Suppressions []json.RawMessage
			Next         string
		}
		if _, err := ask(ctx, operatorRequest(c, http.MethodGet, "/admin/suppressions?after="+url.QueryEscape(after), nil), &page); err != nil {
			return err
		}
		for _, text := range page.Suppressions {
			var e listed
			err := json.Unmarshal(text, &e)
			switch {
			case err != nil:
			case s.JSON:
				_, err = fmt.Fprintf(to.out, "%s\n", text)
			case s.CSV:
				err = file.Write([]string{csvSafe(e.Email), e.Reason, e.Until, e.Since, csvSafe(e.Source)})
			default:
				_, err = fmt.Fprintln(table, strings.Join([]string{e.Email, e.Reason, e.Until, e.Since, e.Source}, "\t"))
			}
			if err != nil {
				return fmt.Errorf("printing the list: %w", err)
			}
		}
		if after = page.Next; after == "" {
			file.Flush()
			return errors.Join(file.Error(), table.Flush())
		}
	}
}
