<?php
// PHPMailer.
require '/usr/share/php/libphp-phpmailer/autoload.php';

$mail = new PHPMailer\PHPMailer\PHPMailer(true);
$mail->isSMTP();
$mail->Host = getenv('SMTP_HOST');
$mail->Port = (int) getenv('SMTP_PORT');
$mail->SMTPAuth = true;
$mail->Username = getenv('SMTP_USER');
$mail->Password = getenv('SMTP_PASSWORD');
$mail->setFrom('no-reply@acme.example');
foreach (array_slice($argv, 1) as $to) {
    $mail->addAddress($to);
}
$mail->Subject = 'code';
$mail->Body = '123456';
try {
    $mail->send();
} catch (PHPMailer\PHPMailer\Exception $e) {
    $said = $mail->getSMTPInstance()->getError();
    fwrite(STDERR, 'thrown: ' . $e->getMessage() . "\ngetError(): " . json_encode($said));
    exit(1);
}
