// Command go is the back end of a sign-up page with net/http.
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"log"
	"net/http"
	"os"

	"github.com/mailgate/mailgate/client"
)

func main() {
	gate, err := client.New(cmp.Or(os.Getenv("MAILGATE_URL"), "http://127.0.0.1:8080"), os.Getenv("MAILGATE_KEY"))
	if err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("POST /send", func(w http.ResponseWriter, r *http.Request) {
		sent, err := gate.Send(r.Context(), client.Mail{Email: r.FormValue("email"), Purpose: "sign-up"})
		limit, limited := errors.AsType[*client.LimitError](err)
		problem, answered := errors.AsType[*client.APIError](err)
		switch {
		case err == nil:
			answer(w, http.StatusOK, sent.ForCountdown())
		case limited:
			answer(w, http.StatusTooManyRequests, limit.ForCountdown())
		case answered && (problem.Kind == client.Invalid || problem.Kind == client.RecipientRejected):
			answer(w, http.StatusUnprocessableEntity, problem.Quota.ForCountdown())
		default:
			log.Print(err) // has no address and no key
			answer(w, http.StatusBadGateway, json.RawMessage("null"))
		}
	})
	http.HandleFunc("POST /verify", func(w http.ResponseWriter, r *http.Request) {
		err := gate.Verify(r.Context(), client.Guess{Email: r.FormValue("email"), Code: r.FormValue("code"), Purpose: "sign-up"})
		if err != nil {
			log.Print(err)
			w.WriteHeader(http.StatusUnprocessableEntity)
			return
		}
		w.WriteHeader(http.StatusNoContent) // here begins the session
	})
	http.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) { http.ServeFile(w, r, "examples/html/index.html") })
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("LISTEN"), "127.0.0.1:3000"), nil))
}

func answer(w http.ResponseWriter, status int, text json.RawMessage) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(text)
}
