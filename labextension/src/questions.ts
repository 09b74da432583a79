/** Asks before what cannot be undone. The answer that changes nothing has the focus, so that a stray Enter does no harm. */

import { Dialog, showDialog } from '@jupyterlab/apputils';

export interface Question {
  readonly title: string;
  /** What is lost. */
  readonly body: string;
  readonly yes: string;
  readonly no: string;
}

export async function isSure(question: Question): Promise<boolean> {
  const { button } = await showDialog({
    title: question.title,
    body: question.body,
    buttons: [
      Dialog.cancelButton({ label: question.no }),
      Dialog.warnButton({ label: question.yes })
    ],
    defaultButton: 0
  });
  return button.accept;
}
