<?php
// Symfony Mailer.
require '/usr/share/php/Symfony/Component/Mailer/autoload.php';

use Symfony\Component\Mailer\Exception\TransportExceptionInterface;
use Symfony\Component\Mailer\Mailer;
use Symfony\Component\Mailer\Transport;
use Symfony\Component\Mime\Email;

$mailer = new Mailer(Transport::fromDsn(sprintf('smtp://%s:%s@%s:%s', getenv('SMTP_USER'), getenv('SMTP_PASSWORD'), getenv('SMTP_HOST'), getenv('SMTP_PORT'))));
try {
    $mailer->send((new Email())->from('no-reply@acme.example')->to(...array_slice($argv, 1))->subject('code')->text('123456'));
} catch (TransportExceptionInterface $e) {
    fwrite(STDERR, $e->getCode() . ' ' . $e->getMessage());
    exit(1);
}
