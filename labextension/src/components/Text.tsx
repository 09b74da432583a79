import * as React from 'react';

import { useDesk } from '../desk';
import { clean } from '../text';
import { sentenceOf, Spoken } from '../words';

/** A name that somebody chose: on one line, in a direction of its own, whole in the tooltip. */
export function Name(props: { readonly text: string; readonly title?: string }): React.JSX.Element {
  return (
    <bdi className="gpb-Name" title={clean(props.title ?? props.text)}>
      {clean(props.text)}
    </bdi>
  );
}

/** What the broker says; commands stand in backticks. */
export function Prose(props: { readonly text: string }): React.JSX.Element {
  const parts = props.text.split('`');
  return (
    <>
      {parts.map((part, at) =>
        at % 2 === 1 ? (
          <code key={at}>{clean(part)}</code>
        ) : (
          <React.Fragment key={at}>{clean(part)}</React.Fragment>
        )
      )}
    </>
  );
}

export function Sentence(props: { readonly of: Spoken }): React.JSX.Element {
  const { words } = useDesk();
  return <Prose text={sentenceOf(props.of, words)} />;
}

/** Why something did not work: read out by screen readers as it appears. */
export function Refused(props: { readonly text: string | null }): React.JSX.Element {
  return (
    <div role="alert" className="gpb-Refused">
      {props.text !== null && <Prose text={props.text} />}
    </div>
  );
}
