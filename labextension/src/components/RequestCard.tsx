import * as React from 'react';

import { useAttempt, useDesk } from '../desk';
import { RequestView } from '../wire';
import { Action } from './Action';
import { Name, Refused, Sentence } from './Text';
import { Why } from './Why';

interface RequestCardProps {
  readonly request: RequestView;
  readonly holder: string;
  readonly holderTitle: string;
  readonly isCurrent: boolean;
}

/** One that waits in line. */
export function RequestCard(props: RequestCardProps): React.JSX.Element {
  const { api, words } = useDesk();
  const { attempt, isBusy, refusal } = useAttempt();
  const [isAsked, setAsked] = React.useState(false);
  const { request } = props;
  return (
    <li
      className={props.isCurrent ? 'gpb-Card gpb-mod-current' : 'gpb-Card'}
      data-request={request.id}
    >
      <header className="gpb-Card-header">
        <h3>
          <Name text={props.holder} title={props.holderTitle} />
        </h3>
      </header>
      <div className="gpb-Card-state">
        <span role="status">
          <span className="gpb-Dot gpb-mod-moving" aria-hidden="true" />
          {words.inQueue(request.place, null)}
        </span>
        <Action label={words.why} isQuiet isExpanded={isAsked} onClick={() => setAsked(!isAsked)} />
      </div>
      <p className="gpb-Card-facts">
        <Sentence of={request} />
      </p>
      <div className="gpb-Actions" role="group" aria-label={words.actionsOf(props.holder)}>
        <Action
          label={words.leave}
          isDisabled={isBusy}
          onClick={() => attempt(() => api.cancel('requests', request.id))}
        />
      </div>
      <Refused text={refusal} />
      {isAsked && <Why things="requests" id={request.id} version={`${request.place ?? ''}`} />}
    </li>
  );
}
