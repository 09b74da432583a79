/**
 * Talks to the broker through this page's own Jupyter server, which checks the login, the role and the XSRF token.
 * Whatever goes wrong becomes a `Refusal` with a sentence for people.
 */

import { URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { UUID } from '@lumino/coreutils';

import {
  GpusView,
  JobsView,
  KeepBody,
  JobView,
  LeaseView,
  OutputView,
  Problem,
  QueueView,
  ReleaseBody,
  RequestBody,
  RequestView,
  SessionsView,
  SubmitBody,
  UnparkBody,
  WhyView
} from './wire';

const API = 'gpubroker/v1';
const BATCH = 'gpubroker/batch';
const PROBLEM = 'application/problem+json';
const JSON_BODY = { 'Content-Type': 'application/json' };

/** The lists that are kept up to date, by their path. */
export interface Lists {
  readonly sessions: SessionsView;
  readonly queue: QueueView;
  readonly gpus: GpusView;
  readonly jobs: JobsView;
}

export type ListName = keyof Lists;

export type Things = 'leases' | 'requests' | 'jobs';

export class Refusal extends Error {
  constructor(readonly problem: Problem) {
    super(problem.detail);
  }
}

export class BrokerApi {
  constructor(private readonly settings: ServerConnection.ISettings) {}

  list<Name extends ListName>(name: Name): Promise<Lists[Name]> {
    return this.ask<Lists[Name]>('GET', name);
  }

  why(things: Things, id: string): Promise<WhyView> {
    return this.ask<WhyView>('GET', `${things}/${id}/why`);
  }

  async request(body: RequestBody): Promise<void> {
    await this.ask('PUT', `requests/${newId()}`, body);
  }

  /** What would become of it; nothing is asked for. */
  outlook(body: RequestBody): Promise<RequestView> {
    return this.ask<RequestView>('POST', 'requests:outlook', body);
  }

  async keep(lease: LeaseView): Promise<void> {
    const body: KeepBody = {};
    await this.ask('POST', `leases/${lease.id}:keep`, body);
  }

  async release(lease: LeaseView): Promise<void> {
    const body: ReleaseBody = {};
    await this.ask('POST', `leases/${lease.id}:release`, body);
  }

  async park(lease: LeaseView): Promise<void> {
    const body: ReleaseBody = {};
    await this.ask('POST', `leases/${lease.id}:park`, body);
  }

  async unpark(lease: LeaseView): Promise<void> {
    const body: UnparkBody = { request_id: newId() };
    await this.ask('POST', `leases/${lease.id}:unpark`, body);
  }

  async cancel(things: 'requests' | 'jobs', id: string): Promise<void> {
    await this.ask('DELETE', `${things}/${id}`);
  }

  submit(body: SubmitBody): Promise<JobView> {
    return this.call<JobView>('POST', `${BATCH}/jobs`, body);
  }

  /** A job's output from these bytes on; the end of it where none is named. */
  output(jobId: string, starts: Readonly<Record<string, number>>): Promise<OutputView> {
    const query = new URLSearchParams(Object.entries(starts).map(([name, at]) => [name, `${at}`]));
    return this.call<OutputView>('GET', `${BATCH}/jobs/${jobId}/output?${query}`);
  }

  private ask<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    return this.call<Answer>(method, `${API}/${path}`, body);
  }

  private async call<Answer>(method: string, path: string, body?: object): Promise<Answer> {
    const url = URLExt.join(this.settings.baseUrl, path);
    const init: RequestInit =
      body === undefined ? { method } : { method, body: JSON.stringify(body), headers: JSON_BODY };
    let response: Response;
    try {
      response = await ServerConnection.makeRequest(url, init, this.settings);
    } catch {
      throw new Refusal(UNREACHABLE);
    }
    if (response.ok) {
      return (await response.json()) as Answer;
    }
    const isProblem = response.headers.get('Content-Type')?.startsWith(PROBLEM) ?? false;
    throw new Refusal(isProblem ? ((await response.json()) as Problem) : notOurs(response.status));
  }
}

function newId(): string {
  return UUID.uuid4().replace(/-/g, '');
}

const UNREACHABLE: Problem = {
  status: 0,
  code: 'server_unreachable',
  title: 'No server',
  detail: 'The Jupyter server does not answer. What you hold stays yours; this goes on by itself.',
  detail_es:
    'El servidor Jupyter no responde. Lo que tiene sigue siendo suyo; esto continuará solo.',
  values: {},
  type: 'about:blank'
};

/** Answered by something before our handlers: a proxy, a login page, a server without the extension. */
function notOurs(status: number): Problem {
  return {
    status,
    code: 'not_served',
    title: 'Not served',
    detail: `This Jupyter server does not lend GPUs (status ${status}). Is jupyter_gpubroker enabled in it?`,
    detail_es: `Este servidor Jupyter no presta GPU (estado ${status}). ¿Está activado jupyter_gpubroker en él?`,
    values: {},
    type: 'about:blank'
  };
}
