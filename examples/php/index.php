<?php
// The back end of a sign-up page in plain PHP with its curl extension.
declare(strict_types=1);

/** Returns the status and the JSON of mailgate's answer. Under a key it is safe to ask again. */
function ask(string $path, array $body, string $key = ''): array
{
    $headers = ['Authorization: Bearer ' . getenv('MAILGATE_KEY'), 'Content-Type: application/json'];
    if ($key !== '') {
        $headers[] = "Idempotency-Key: $key";
    }
    $curl = curl_init((getenv('MAILGATE_URL') ?: 'http://127.0.0.1:8080') . $path);
    curl_setopt_array($curl, [
        CURLOPT_HTTPHEADER => $headers,
        CURLOPT_POSTFIELDS => json_encode($body, JSON_THROW_ON_ERROR),
        CURLOPT_RETURNTRANSFER => true,
        CURLOPT_TIMEOUT => 20,
    ]);
    for ($attempt = 0; $attempt < ($key === '' ? 1 : 3); $attempt++) {
        usleep($attempt * 300_000);
        $text = curl_exec($curl);
        $status = curl_getinfo($curl, CURLINFO_RESPONSE_CODE);
        if ($text !== false && !in_array($status, [409, 502, 503], true)) {
            return [$status, $text];
        }
    }
    return [502, 'null'];
}

$email = (string) ($_POST['email'] ?? '');
switch ($_SERVER['REQUEST_METHOD'] . ' ' . $_SERVER['SCRIPT_NAME']) {
    case 'POST /send':
        [$status, $text] = ask('/send-code', ['email' => $email, 'purpose' => 'sign-up'], bin2hex(random_bytes(16)));
        http_response_code($status);
        header('Content-Type: application/json');
        echo $text; // the page passes it to the countdown
        break;
    case 'POST /verify':
        [$status] = ask('/verify-code', ['email' => $email, 'code' => (string) ($_POST['code'] ?? ''), 'purpose' => 'sign-up']);
        http_response_code($status === 200 ? 204 : 422); // at 204 begins the session
        break;
    default:
        readfile(__DIR__ . '/../html/index.html');
}
